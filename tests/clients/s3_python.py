"""A storage that speaks S3's API and checks signatures, for the export of logs.

Prints one JSON line: endpoint, access_key_id, secret_access_key. For each line of input it prints all objects of the bucket as a
JSON line: pairs of a key and its text.
"""

import gzip
import json
import sys

import boto3
from moto.core.authorization import enable_iam_authentication
from moto.server import ThreadedMotoServer

REGION = "us-east-1"
POLICY = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}

server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
host, port = server.get_host_and_port()
endpoint = f"http://{host}:{port}"


def client(service, key_id="a", key="b"):
    keys = {"aws_access_key_id": key_id, "aws_secret_access_key": key}
    return boto3.client(service, endpoint_url=endpoint, region_name=REGION, **keys)


client("s3").create_bucket(Bucket="calls")
iam = client("iam")
iam.create_user(UserName="export")
iam.put_user_policy(UserName="export", PolicyName="p", PolicyDocument=json.dumps(POLICY))
key = iam.create_access_key(UserName="export")["AccessKey"]
made = {"access_key_id": key["AccessKeyId"], "secret_access_key": key["SecretAccessKey"]}
known = client("s3", made["access_key_id"], made["secret_access_key"])
# From here on moto compares each signature with the one that botocore makes of the request.
with enable_iam_authentication():
    print(json.dumps({"endpoint": endpoint, **made}), flush=True)
    for _ in sys.stdin:
        listed = known.list_objects_v2(Bucket="calls").get("Contents", [])
        texts = []
        for found in listed:
            body = known.get_object(Bucket="calls", Key=found["Key"])["Body"].read()
            text = gzip.decompress(body) if found["Key"].endswith(".gz") else body
            texts.append([found["Key"], text.decode()])
        print(json.dumps(texts), flush=True)
