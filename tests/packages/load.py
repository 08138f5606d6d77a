"""Asks a gateway again and again until a file appears, and tells how many calls were answered: load.py URL KEY FILE."""

import json
import os
import sys
import threading
import urllib.request

url, key, end = sys.argv[1:]
body = json.dumps({"model": "sandbox-chat", "messages": [{"role": "user", "content": "Hi"}], "stream": True}).encode()
headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
answered, failures = [], []


def ask_steadily():
    while not os.path.exists(end):
        request = urllib.request.Request(f"{url}/v1/chat/completions", body, headers)
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                whole = response.read()
            if not whole.rstrip().endswith(b"[DONE]"):
                raise ValueError(f"a cut stream: {whole[-200:]!r}")
            answered.append(1)
        except Exception as error:  # whatever it is, a call has failed
            failures.append(f"{type(error).__name__}: {error}")


threads = [threading.Thread(target=ask_steadily) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(f"{len(answered)} calls answered, {len(failures)} failed")
for failure in failures[:5]:
    print(failure)
sys.exit(bool(failures) or len(answered) < 20)
