"""Writes datafiles and what the public Python SDK decides about random users in them.

Usage: generate.py FOLDER DATAFILES USERS SEED [plain]. The folder gets one `N.json` per datafile, and `vectors.jsonl` with
a line per user: datafile, user, attributes, forced decisions, and per flag [variation, enabled, rule, variables].

`plain` leaves out what the SDKs do not agree on: conditions on third-party dimensions, which the npm SDK does not
know, and holdouts that spare targeted deliveries, in which it passes over experiments.
"""

import json
import logging
import random
import sys
from pathlib import Path

from optimizely import optimizely
from optimizely.optimizely_user_context import OptimizelyUserContext

MATCHES = ["exact", "exists", "substring", "gt", "ge", "lt", "le", "semver_eq", "semver_gt", "semver_ge", "semver_lt", "semver_le", None, "unheard_of"]
ATTRIBUTES = ["country", "age", "beta", "version", "plan", "score"]
TEXTS = ["US", "DE", "us", "", "Ünïcode 用户", "gold", "old", "3.7.2"]
NUMBERS = [0, 1, -1, 3, 3.0, 17.5, 18, 1e9, 2**53, 2**53 + 2, -(2**53) - 2, 0.1]
VERSIONS = ["2.0", "2", "2.0.0", "2.1", "2.1.0", "2.1.0-beta", "2.1.0-alpha", "2.1.0+build", "2.1.0-beta+x", "3.0.1", "v2", "2..1", "1.2.3.4", "", "2.1 "]
KINDS = ["string", "boolean", "integer", "double", "json"]


class Made:
    """A datafile in the making; ids count up."""

    def __init__(self, rng, plain):
        self.rng, self.plain, self.next = rng, plain, 1000

    def id(self):
        self.next += 1
        return str(self.next)

    def leaf(self):
        rng = self.rng
        match = rng.choice(MATCHES)
        name = rng.choice(ATTRIBUTES)
        if match and match.startswith("semver"):
            name, value = "version", rng.choice(VERSIONS[:10])
        elif match in ("gt", "ge", "lt", "le"):
            value = rng.choice(NUMBERS)
        elif match == "substring":
            value = rng.choice(["U", "ol", "", "用"])
        else:
            value = rng.choice([rng.choice(TEXTS), rng.choice(NUMBERS), True, False])
        leaf = {"type": rng.choice(["custom_attribute"] * 9 + ["custom_attribute" if self.plain else "third_party_dimension", "other"]), "name": name, "value": value}
        if match:
            leaf["match"] = match
        return leaf

    def tree(self, leaf, depth=0):
        rng = self.rng
        if depth > 2 or rng.random() < 0.35:
            return leaf()
        operator = rng.choice(["and", "or", "not"])
        count = 1 if operator == "not" else rng.randint(1, 3)
        return [operator] + [self.tree(leaf, depth + 1) for _ in range(count)]

    def audiences(self):
        made = []
        for number in range(self.rng.randint(3, 7)):
            tree = self.tree(self.leaf)
            tree = tree if isinstance(tree, list) else ["or", tree]
            made.append({"id": self.id(), "name": f"audience {number}", "conditions": tree})
        return made

    def variations(self, key, variables):
        rng = self.rng
        made = []
        for number in range(rng.randint(1, 3)):
            values = [{"id": one["id"], "value": self.value(one["type"])} for one in variables if rng.random() < 0.6]
            made.append({"id": self.id(), "key": f"{key}_v{number}", "featureEnabled": rng.random() < 0.8, "variables": values})
        return made

    def value(self, kind):
        rng = self.rng
        return {
            "string": rng.choice(TEXTS),
            "boolean": rng.choice(["true", "false"]),
            "integer": str(rng.randint(-1000, 10**12)),
            "double": rng.choice(["1.5", "-0.25", "3", "1e3", "0.000001", "123456.789"]),
            "json": json.dumps({"k": rng.choice(NUMBERS), "l": [1, "two", None], "ü": {"n": True}}),
        }[kind]

    def rule(self, key, audiences, variables, full=False):
        rng = self.rng
        made = {"id": self.id(), "key": key, "layerId": self.id(), "status": "Running", "forcedVariations": {}, "audienceIds": []}
        made["variations"] = self.variations(key, variables)
        ids = [one["id"] for one in audiences]
        draw = rng.random()
        if draw < 0.3:
            made["audienceIds"] = rng.sample(ids, rng.randint(1, 2))
        elif draw < 0.6:
            pick = lambda: rng.choice(ids + ["404"])
            tree = self.tree(pick)
            made["audienceConditions"] = tree if isinstance(tree, list) else [tree]
        end, ranges = 0, []
        for variation in made["variations"]:
            end = 10000 if full else min(10000, end + rng.randint(0, 6000))
            ranges.append({"entityId": rng.choice([variation["id"]] * 8 + [""]) if not full else variation["id"], "endOfRange": end})
        made["trafficAllocation"] = ranges
        return made

    def experiment(self, key, audiences, variables, users):
        rng = self.rng
        made = self.rule(key, audiences, variables)
        if rng.random() < 0.1:
            made["status"] = rng.choice(["Paused", "Not started"])
        if rng.random() < 0.3:
            made["type"] = rng.choice(["td", "fr", "ab"])
        for user in rng.sample(users, 2):
            made["forcedVariations"][user] = rng.choice([made["variations"][0]["key"], "nobody's"])
        return made

    def holdout(self, key, audiences):
        made = self.rule(key, audiences, [])
        made["status"] = self.rng.choice(["Running", "Running", "Draft"])
        for variation in made["variations"]:
            # A holdout that turns a flag on leaves the SDK without values for its variables.
            variation["featureEnabled"] = False
        for number, part in enumerate(made["trafficAllocation"]):
            part["endOfRange"] = (number + 1) * self.rng.randint(0, 1200)
        if self.rng.random() < 0.4 and not self.plain:
            made["excludeTargetedDeliveries"] = True
        return made

    def datafile(self, users):
        rng = self.rng
        typed, legacy = self.audiences(), self.audiences()
        audiences = typed + legacy
        flags, experiments, rollouts, grouped = [], [], [], []
        for number in range(8):
            variables = [{"id": self.id(), "key": f"{kind}_var", "type": kind, "defaultValue": self.value(kind)} for kind in rng.sample(KINDS, rng.randint(0, 5))]
            for variable in variables:
                if variable["type"] == "json":
                    variable["type"], variable["subType"] = "string", "json"
            named = [dict(one, type="json") if one.get("subType") else one for one in variables]
            mine = [self.experiment(f"exp_{number}_{at}", audiences, named, users) for at in range(rng.randint(0, 3))]
            (grouped if rng.random() < 0.3 else experiments).extend(mine)
            rollout = {"id": self.id(), "experiments": []}
            for at in range(rng.randint(0, 4)):
                rollout["experiments"].append(self.rule(f"rule_{number}_{at}", audiences, named))
            if rollout["experiments"]:
                last = self.rule(f"default-rollout-{number}", audiences, named, full=rng.random() < 0.7)
                last["audienceIds"] = []
                last.pop("audienceConditions", None)
                rollout["experiments"].append(last)
            rollouts.append(rollout)
            flags.append({"id": self.id(), "key": f"flag_{number}", "rolloutId": rng.choice([rollout["id"]] * 5 + [""]), "experimentIds": [one["id"] for one in mine], "variables": variables})
        half = len(grouped) // 2
        groups = []
        for policy, part in (("random", grouped[:half]), ("overlapping", grouped[half:])):
            ranges, end = [], 0
            for one in part:
                end += 10000 // max(1, len(part))
                ranges.append({"entityId": one["id"], "endOfRange": end})
            groups.append({"id": self.id(), "policy": policy, "trafficAllocation": ranges, "experiments": part})
        rules = [one["id"] for one in experiments + grouped] + [rule["id"] for rollout in rollouts for rule in rollout["experiments"]]
        local = []
        for number in range(rng.randint(0, 2)):
            if rules:
                local.append(dict(self.holdout(f"local_{number}", audiences), includedRules=rng.sample(rules, min(3, len(rules)))))
        return {
            "version": "4", "accountId": "1", "projectId": "2", "revision": self.id(), "sdkKey": "made", "environmentKey": "test",
            "anonymizeIP": True, "botFiltering": False, "sendFlagDecisions": rng.random() < 0.5,
            "attributes": [{"id": self.id(), "key": key} for key in ATTRIBUTES], "events": [{"id": self.id(), "key": "bought", "experimentIds": []}],
            "typedAudiences": typed, "audiences": [dict(one, conditions=json.dumps(one["conditions"])) for one in legacy],
            "experiments": experiments, "groups": groups, "featureFlags": flags, "rollouts": rollouts, "variables": [], "integrations": [],
            "holdouts": [self.holdout(f"holdout_{at}", audiences) for at in range(rng.randint(0, 2))], "localHoldouts": local,
        }


def attributes(rng):
    made = {}
    for name in ATTRIBUTES:
        draw = rng.random()
        if draw < 0.3:
            continue
        if name == "version":
            made[name] = rng.choice(VERSIONS + [2, None])
        else:
            made[name] = rng.choice([rng.choice(TEXTS), rng.choice(NUMBERS), True, False, None])
    if rng.random() < 0.2:
        made["$opt_bucketing_id"] = rng.choice(["b1", "b2", "", "用户"])
    return made


def decide(client, user, given, forced):
    context = OptimizelyUserContext(client, client.logger, user, given)
    for flag, rule, variation in forced:
        context.set_forced_decision(OptimizelyUserContext.OptimizelyDecisionContext(flag, rule), OptimizelyUserContext.OptimizelyForcedDecision(variation))
    decided = context.decide_all(["DISABLE_DECISION_EVENT"])
    return {key: [one.variation_key, one.enabled, one.rule_key, one.variables] for key, one in decided.items()}


def main():
    folder, datafiles, count = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    rng, plain = random.Random(int(sys.argv[4])), sys.argv[5:] == ["plain"]
    folder.mkdir(parents=True, exist_ok=True)
    logging.disable(logging.CRITICAL)
    with open(folder / "vectors.jsonl", "w", encoding="utf-8") as out:
        for number in range(datafiles):
            users = [f"user-{number}-{at}" for at in range(count)]
            made = Made(rng, plain).datafile(users)
            text = json.dumps(made, ensure_ascii=False)
            (folder / f"{number}.json").write_text(text, encoding="utf-8")
            client = optimizely.Optimizely(text, skip_json_validation=True)
            assert client.is_valid, number
            keys = [flag["key"] for flag in made["featureFlags"]]
            rules = [rule["key"] for rollout in made["rollouts"] for rule in rollout["experiments"]] + [one["key"] for one in made["experiments"]]
            variations = [one["key"] for rollout in made["rollouts"] for rule in rollout["experiments"] for one in rule["variations"]]
            for user in users:
                given, forced = attributes(rng), []
                if rng.random() < 0.1 and rules and variations:
                    forced = [[rng.choice(keys), rng.choice([None] + rules), rng.choice(variations + ["none"])] for _ in range(4)]
                line = {"datafile": number, "user": user, "attributes": given, "forced": forced, "decisions": decide(client, user, given, forced)}
                out.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")


main()
