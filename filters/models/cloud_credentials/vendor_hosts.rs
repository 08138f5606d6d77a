//! Which addresses the sources of credentials may have: those of the vendors, and loopback where the operator has written them.
//!
//! A file of credentials may come from a stranger. If it could name any address, the gateway would ask that address for
//! tokens, or send it some. Source: docs/hostile-input.md 101.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use url::{Host, Url};

use super::source_error::SourceError;

/// What an address is for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SourceHost {
    /// AWS's service that trades tokens for keys.
    AwsSts,
    /// The metadata of AWS's machines, containers and pods.
    AwsMetadata,
    /// The authority of Microsoft Entra.
    EntraAuthority,
    /// Managed identities of Azure's machines and apps.
    EntraIdentity,
    /// Google's endpoints of tokens.
    GoogleToken,
    /// The metadata of Google's machines.
    GoogleMetadata,
    /// A source of tokens that Google trades for its own: the metadata of any of these clouds.
    AnyMetadata,
}

const ENTRA_HOSTS: [&str; 6] = [
    "login.microsoftonline.com",
    "login.microsoft.com",
    "login.windows.net",
    "login.microsoftonline.us",
    "login.chinacloudapi.cn",
    "login.partner.microsoftonline.cn",
];
const AWS_SUFFIXES: [&str; 4] = [
    "amazonaws.com",
    "amazonaws.com.cn",
    "amazonaws.eu",
    "api.aws",
];
const GOOGLE_HOSTS: [&str; 6] = [
    "oauth2.googleapis.com",
    "accounts.google.com",
    "www.googleapis.com",
    "sts.googleapis.com",
    "iamcredentials.googleapis.com",
    "oauth2.mtls.googleapis.com",
];
const GOOGLE_METADATA: [&str; 2] = ["metadata.google.internal", "metadata"];
/// The address of the metadata of all three clouds' machines.
const METADATA_V4: Ipv4Addr = Ipv4Addr::new(169, 254, 169, 254);
const ECS_V4: Ipv4Addr = Ipv4Addr::new(169, 254, 170, 2);
const EKS_V4: Ipv4Addr = Ipv4Addr::new(169, 254, 170, 23);
const EC2_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254);
const EKS_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23);

impl SourceHost {
    /// Checks an address that the operator has written, in the environment or in a file of credentials that it names.
    ///
    /// Errors: it is neither the vendor's nor loopback, or another form than the vendor's.
    pub fn check(self, setting: &'static str, text: &str) -> Result<Url, SourceError> {
        let error = |came: &str| SourceError::new(setting, came, self.cure());
        let url = Url::parse(text).map_err(|_| error("it is no address"))?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(error("the address holds a user name or a password"));
        }
        let host = url.host().ok_or_else(|| error("the address has no host"))?;
        let is_loopback = match host {
            Host::Ipv4(ip) => ip.is_loopback(),
            Host::Ipv6(ip) => ip.is_loopback(),
            Host::Domain(name) => name == "localhost",
        };
        let is_plain = is_loopback || self.is_metadata(&host);
        match url.scheme() {
            "https" if is_plain || self.is_vendors(&host) => Ok(url),
            "http" if is_plain => Ok(url),
            "http" | "https" => Err(error("the address is not one of the vendor's")),
            _ => Err(error("the address is neither https nor http")),
        }
    }

    fn is_vendors(self, host: &Host<&str>) -> bool {
        let Host::Domain(name) = host else {
            return false;
        };
        match self {
            Self::AwsSts => is_sts(name),
            Self::EntraAuthority => ENTRA_HOSTS.contains(name),
            Self::GoogleToken => GOOGLE_HOSTS.contains(name) || is_regional_google(name),
            _ => false,
        }
    }

    fn is_metadata(self, host: &Host<&str>) -> bool {
        let ip = match host {
            Host::Domain(name) => {
                let has_names = matches!(self, Self::GoogleMetadata | Self::AnyMetadata);
                return has_names && GOOGLE_METADATA.contains(name);
            }
            Host::Ipv4(ip) => IpAddr::V4(*ip),
            Host::Ipv6(ip) => IpAddr::V6(*ip),
        };
        let is_machines = ip == METADATA_V4;
        let is_aws = is_machines
            || [
                IpAddr::V4(ECS_V4),
                IpAddr::V4(EKS_V4),
                EC2_V6.into(),
                EKS_V6.into(),
            ]
            .contains(&ip);
        // Apps have theirs at some addresses of the same link.
        let is_app =
            matches!(ip, IpAddr::V4(ip) if matches!(ip.octets(), [169, 254, 129..=131, _]));
        match self {
            Self::AwsMetadata | Self::AnyMetadata => is_aws,
            Self::EntraIdentity => is_machines || is_app,
            Self::GoogleMetadata => is_machines,
            _ => false,
        }
    }

    fn cure(self) -> &'static str {
        match self {
            Self::AwsSts => "name an https host of AWS's STS, or loopback",
            Self::AwsMetadata => "name AWS's metadata address, or loopback",
            Self::EntraAuthority => {
                "name an https authority of Microsoft Entra, such as https://login.microsoftonline.com"
            }
            Self::EntraIdentity => "name Azure's identity endpoint, or loopback",
            Self::GoogleToken => "name an https host of Google's tokens, or loopback",
            Self::GoogleMetadata => "name Google's metadata server, or loopback",
            Self::AnyMetadata => "name a cloud's metadata address, or loopback",
        }
    }
}

/// Returns whether a host is one of STS, or its private link. A bucket's host may begin with the same labels.
fn is_sts(name: &str) -> bool {
    let mut suffixes = AWS_SUFFIXES.iter();
    let labels = suffixes.find_map(|suffix| name.strip_suffix(suffix)?.strip_suffix('.'));
    let labels: Vec<&str> = labels.map_or_else(Vec::new, |labels| labels.split('.').collect());
    let is_region = |label: &str| label.matches('-').count() >= 2 && !label.starts_with("s3");
    match labels.as_slice() {
        ["sts" | "sts-fips"] => true,
        ["sts" | "sts-fips", region] => is_region(region),
        [link, "sts" | "sts-fips", region, "vpce"] => {
            link.starts_with("vpce-") && is_region(region)
        }
        _ => false,
    }
}

/// Returns whether a host is one of Google's in a region, such as `sts.us-east1.rep.googleapis.com`.
fn is_regional_google(name: &str) -> bool {
    let labels: Vec<&str> = name.split('.').collect();
    matches!(
        labels.as_slice(),
        ["sts" | "iamcredentials", _, "rep", "googleapis", "com"]
    )
}

#[cfg(test)]
mod tests {
    use super::SourceHost::*;
    use super::*;

    fn passes(host: SourceHost, url: &str) -> bool {
        host.check("A_SETTING", url).is_ok()
    }

    #[test]
    fn the_vendors_hosts_and_loopback_pass() {
        for (host, url) in [
            (AwsSts, "https://sts.amazonaws.com"),
            (AwsSts, "https://sts.eu-west-1.amazonaws.com/"),
            (AwsSts, "https://sts.cn-north-1.amazonaws.com.cn"),
            (AwsSts, "https://vpce-1-a.sts.us-east-1.vpce.amazonaws.com"),
            (AwsSts, "http://127.0.0.1:4566/"),
            (AwsMetadata, "http://169.254.170.2/v2/credentials/1"),
            (AwsMetadata, "http://[fd00:ec2::254]"),
            (AwsMetadata, "http://[::1]:8080/x"),
            (EntraAuthority, "https://login.microsoftonline.us/"),
            (EntraIdentity, "http://169.254.129.3:8081/msi/token"),
            (EntraIdentity, "http://localhost:42356/msi/token"),
            (GoogleToken, "https://oauth2.googleapis.com/token"),
            (
                GoogleToken,
                "https://sts.us-east1.rep.googleapis.com/v1/token",
            ),
            (GoogleMetadata, "http://metadata.google.internal/"),
            (AnyMetadata, "http://169.254.169.254/latest"),
        ] {
            assert!(passes(host, url), "{host:?} {url}");
        }
    }

    #[test]
    fn others_are_refused_however_they_look() {
        for (host, url) in [
            (AwsSts, "http://sts.amazonaws.com"),
            (AwsSts, "https://sts.amazonaws.com.evil.example"),
            (AwsSts, "https://sts.s3.amazonaws.com.evil.com"),
            (AwsSts, "https://bucket.s3.amazonaws.com/"),
            (AwsSts, "https://sts.s3.amazonaws.com/"),
            (AwsSts, "https://sts.s3-website-us-east-1.amazonaws.com/"),
            (AwsSts, "https://vpce-1.sts.s3.amazonaws.com/"),
            (AwsSts, "https://xsts.amazonaws.com"),
            (AwsSts, "https://user@sts.amazonaws.com"),
            (AwsMetadata, "http://169.254.169.253/"),
            (AwsMetadata, "http://10.0.0.1/"),
            (AwsMetadata, "https://example.com/"),
            (
                EntraAuthority,
                "https://login.microsoftonline.com.evil.example",
            ),
            (
                EntraAuthority,
                "https://login.microsoftonline.com@evil.example",
            ),
            (EntraIdentity, "http://169.254.170.2/"),
            (GoogleToken, "https://storage.googleapis.com/b/token"),
            (GoogleToken, "http://oauth2.googleapis.com/token"),
            (GoogleToken, "https://a.b.rep.googleapis.com/"),
            (GoogleToken, "https://169.254.169.254/"),
            (
                GoogleMetadata,
                "http://metadata.google.internal.evil.example/",
            ),
            (AnyMetadata, "https://pipelines.example.com/token"),
            (AnyMetadata, "file:///etc/passwd"),
            (AnyMetadata, "data:text/plain,a"),
            (AnyMetadata, "http://"),
            (AnyMetadata, "token"),
        ] {
            assert!(!passes(host, url), "{host:?} {url}");
        }
        let error = EntraAuthority.check("AZURE_AUTHORITY_HOST", "https://evil.example/?k=v");
        let error = error.err().map(|error| error.to_string());
        let expected = "AZURE_AUTHORITY_HOST: the address is not one of the vendor's; \
                        name an https authority of Microsoft Entra, such as https://login.microsoftonline.com";
        assert_eq!(error.as_deref(), Some(expected));
    }
}
