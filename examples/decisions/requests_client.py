"""Flag decisions over HTTP; see ../README.md."""

import os

import requests

URL = os.environ.get("WEIRGATE_URL", "http://127.0.0.1:8080")

session = requests.Session()
session.headers["X-Platform-SDK-Key"] = os.environ.get("WEIRGATE_SDK_KEY", "sandbox")


def decide(user_id, attributes, *keys):
    """One decision for one key, a list for several, all flags for none."""
    answer = session.post(
        f"{URL}/v1/decide",
        params=[("keys", key) for key in keys],
        json={"userId": user_id, "userAttributes": attributes},
        timeout=5,
    )
    answer.raise_for_status()
    return answer.json()


for user in ["ada", "bob", "cleo"]:
    checkout = decide(user, {"country": "DE"}, "checkout")
    print(user, "gets", checkout["variationKey"], checkout["variables"])

print([flag["flagKey"] for flag in decide("ada", {"country": "DE", "version": "2.1"}) if flag["enabled"]], "are on for ada")

answer = session.post(
    f"{URL}/v1/track", params={"eventKey": "purchase"}, json={"userId": "ada", "eventTags": {"revenue": 4200}}, timeout=5
)
print("track:", answer.status_code)
