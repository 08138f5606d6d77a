//! Inference profiles of AWS, which send calls on to other regions. Source: docs/facts/clouds.md 1.2.

/// What stands for a resource of one region in an ARN.
const STAYING: [&str; 4] = [
    "foundation-model/",
    "provisioned-model/",
    "custom-model-deployment/",
    "imported-model/",
];

/// Returns where calls of a model in a region are computed; `None`: that is unknown.
///
/// A profile of AWS's own has the name of its geography before that of the vendor, as in `eu.anthropic.claude-…`, and sends calls to
/// any region of it; `global` is anywhere. What a profile of a customer does is not in its name.
pub(super) fn residence<'a>(model: &'a str, region: &'a str) -> Option<&'a str> {
    // arn:PARTITION:SERVICE:REGION:ACCOUNT:RESOURCE
    if !model.starts_with("arn:") {
        return Some(geography(model).unwrap_or(region));
    }
    let resource = model.splitn(6, ':').nth(5)?;
    if STAYING.iter().any(|kind| resource.starts_with(kind)) {
        return Some(region);
    }
    resource
        .strip_prefix("inference-profile/")
        .and_then(geography)
}

/// Returns the geography of a profile's id; `None`: it is the id of a model.
fn geography(id: &str) -> Option<&str> {
    let mut parts = id.splitn(3, '.');
    let (first, vendor, _) = (parts.next()?, parts.next()?, parts.next()?);
    // Behind the vendor of a model stands the model, which has a dash or a digit where it has a point.
    let is_vendor = !vendor.is_empty() && vendor.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let is_version = vendor.bytes().any(|byte| byte.is_ascii_digit()) && vendor != "ai21";
    (is_vendor && !is_version).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_is_in_its_geography_and_a_model_in_its_region() {
        const ARN: &str = "arn:aws:bedrock:eu-west-1:1:";
        for (model, expected) in [
            ("anthropic.claude-sonnet-4-5-v1:0", Some("eu-west-1")),
            ("amazon.nova-pro-v1:0", Some("eu-west-1")),
            ("openai.gpt-5.6-sol", Some("eu-west-1")),
            ("zai.glm-4.7", Some("eu-west-1")),
            ("eu.anthropic.claude-sonnet-4-5-v1:0", Some("eu")),
            ("us.openai.gpt-5.6-sol", Some("us")),
            ("us.ai21.jamba-1-5-v1:0", Some("us")),
            ("global.anthropic.claude-opus-4-8", Some("global")),
            (
                "arn:aws:bedrock:eu-west-1::foundation-model/amazon.nova-lite-v1:0",
                Some("eu-west-1"),
            ),
            (
                &[ARN, "inference-profile/global.amazon.nova-2-lite-v1:0"].concat(),
                Some("global"),
            ),
            (&[ARN, "application-inference-profile/a1b2"].concat(), None),
            (&[ARN, "prompt-router/a1b2"].concat(), None),
            (&[ARN, "imported-model/a1b2"].concat(), Some("eu-west-1")),
            ("arn:", None),
        ] {
            assert_eq!(residence(model, "eu-west-1"), expected, "{model}");
        }
    }
}
