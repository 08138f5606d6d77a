"""Validates manifests with the schemas of Kubernetes: unknown fields are errors, too."""

import sys

import kubernetes_validate
import yaml

for path in sys.argv[1:]:
    with open(path) as file:
        resources = list(yaml.safe_load_all(file))
    assert resources, f"{path} has no resource"
    for resource in resources:
        kubernetes_validate.validate(resource, kubernetes_validate.latest_version(), strict=True)
        print("ok", resource["kind"], resource["metadata"]["name"])
