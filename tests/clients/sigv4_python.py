"""Signatures of random requests by botocore, AWS's own signer, one JSON object a line.

Environment: SIGNATURES (how many), SEED.
"""

import datetime
import json
import os
import random

import botocore.auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

COUNT = int(os.environ.get("SIGNATURES", "500"))
CHOICE = random.Random(int(os.environ.get("SEED", "1")))
# What ids of models have, what needs encoding, what is encoded already, and letters beyond ASCII.
PIECES = [":", "/", "%3A", "%2F", "%25", "%", "~", "-", ".", "..", "_", " ", "@", "+", "=", "(", "ü", "模", "🙂", "Az9", "m1"]
HEADERS = ["accept", "content-type", "user-agent", "x-amzn-bedrock-trace", "x-a", "anthropic-version"]
VALUES = ["application/json", " a  b ", "a,b", "x=1; y=2", "\tz", "2023-06-01"]


def text(pieces, most):
    return "".join(CHOICE.choice(pieces) for _ in range(CHOICE.randint(0, most)))


def sample():
    path = "/" + text(PIECES, 12)
    pairs = [f"k{CHOICE.randint(0, 9)}" + CHOICE.choice(["", "=", "=v", "=%20a", "=a%2Fb"]) for _ in range(CHOICE.randint(0, 4))]
    target = path + ("?" + "&".join(pairs) if pairs else "")
    headers = {name: CHOICE.choice(VALUES) for name in CHOICE.sample(HEADERS, CHOICE.randint(0, 4))}
    # botocore never signs this one.
    headers.pop("user-agent", None)
    seconds = CHOICE.randint(1_400_000_000, 2_500_000_000)
    return {
        "method": CHOICE.choice(["GET", "POST", "PUT", "DELETE"]),
        "host": CHOICE.choice(["bedrock-runtime.eu-west-1.amazonaws.com", "bedrock.internal", "a.example.com"]),
        "target": target,
        "headers": headers,
        "body": text(PIECES + ['{"a":1}'], 30),
        "access_key_id": "AKIA" + text("ABCDEF234567", 16),
        "secret_access_key": text("abc/+DEF0123", 60),
        "session_token": CHOICE.choice([None, "token/" + text("abc+/=", 80)]),
        "region": CHOICE.choice(["us-east-1", "eu-central-1", "us-gov-west-1"]),
        "service": CHOICE.choice(["bedrock", "bedrock-mantle", "sts"]),
        "now_s": seconds,
    }


def sign(request):
    now = datetime.datetime.fromtimestamp(request["now_s"], datetime.timezone.utc).replace(tzinfo=None)
    botocore.auth.get_current_datetime = lambda remove_tzinfo=True: now
    signed = AWSRequest(
        method=request["method"],
        url=f"https://{request['host']}{request['target']}",
        headers=request["headers"],
        data=request["body"].encode(),
    )
    keys = Credentials(request["access_key_id"], request["secret_access_key"], request["session_token"])
    botocore.auth.SigV4Auth(keys, request["service"], request["region"]).add_auth(signed)
    return signed.headers["Authorization"]


for _ in range(COUNT):
    request = sample()
    print(json.dumps({**request, "authorization": sign(request)}))
