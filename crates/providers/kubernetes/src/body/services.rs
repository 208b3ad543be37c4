//! By what a sandbox is reached, and whom it may reach.

use gloveport_provider::ProviderError;
use k8s_openapi::{
    api::{
        core::v1::{Service, ServicePort, ServiceSpec},
        networking::v1::{
            HTTPIngressPath, HTTPIngressRuleValue, Ingress, IngressBackend, IngressRule, IngressServiceBackend,
            IngressSpec, IngressTLS, NetworkPolicy, ServiceBackendPort,
        },
    },
    apimachinery::pkg::{apis::meta::v1::OwnerReference, util::intstr::IntOrString},
};

use super::Plan;
use crate::{
    names::{self, EDITOR, GATE_PORT, SERVER_PORT},
    network,
};

impl Plan<'_> {
    /// The service of its server, and of programs in it.
    pub(crate) fn service(&self, owner: &OwnerReference) -> Result<Service, ProviderError> {
        let server = ServicePort {
            name: Some("execution-server".to_owned()),
            port: SERVER_PORT.into(),
            // Apply tells ports apart by it.
            protocol: Some("TCP".to_owned()),
            target_port: Some(IntOrString::String("http".to_owned())),
            ..ServicePort::default()
        };
        let others = self.ports()?.into_values().map(|port| ServicePort {
            name: Some(format!("port-{port}")),
            port: port.into(),
            protocol: Some("TCP".to_owned()),
            target_port: Some(IntOrString::Int(port.into())),
            ..ServicePort::default()
        });
        Ok(Service {
            metadata: self.meta(&names::service(self.id.as_str()), Some(owner)),
            spec: Some(ServiceSpec {
                selector: Some(self.selector()),
                ports: Some([server].into_iter().chain(others).collect()),
                // The server itself says when it is ready.
                publish_not_ready_addresses: Some(true),
                ..ServiceSpec::default()
            }),
            ..Service::default()
        })
    }

    /// The service and the ingress of its editor.
    pub(crate) fn editor(&self, owner: &OwnerReference) -> Option<(Service, Ingress)> {
        if !self.has_editor() {
            return None;
        }
        let id = self.id.as_str();
        let service = Service {
            metadata: self.meta(&names::editor_service(id), Some(owner)),
            spec: Some(ServiceSpec {
                selector: Some(self.selector()),
                ports: Some(vec![ServicePort {
                    name: Some("code".to_owned()),
                    port: EDITOR.1.into(),
                    protocol: Some("TCP".to_owned()),
                    target_port: Some(IntOrString::String(EDITOR.0.to_owned())),
                    ..ServicePort::default()
                }]),
                ..ServiceSpec::default()
            }),
            ..Service::default()
        };
        let host = names::host(id, &self.options.ingress_domain);
        let rule = IngressRule {
            host: Some(host.clone()),
            http: Some(HTTPIngressRuleValue {
                paths: vec![HTTPIngressPath {
                    path: Some("/".to_owned()),
                    path_type: "Prefix".to_owned(),
                    backend: IngressBackend {
                        service: Some(IngressServiceBackend {
                            name: names::editor_service(id),
                            port: Some(ServiceBackendPort {
                                number: Some(EDITOR.1.into()),
                                ..ServiceBackendPort::default()
                            }),
                        }),
                        ..IngressBackend::default()
                    },
                }],
            }),
        };
        let certificate = self.options.ingress_tls_secret.clone();
        let mut meta = self.meta(&names::ingress(id), Some(owner));
        meta.annotations = Some([("external-dns.alpha.kubernetes.io/hostname".to_owned(), host.clone())].into());
        let ingress = Ingress {
            metadata: meta,
            spec: Some(IngressSpec {
                ingress_class_name: self.options.ingress_class.clone(),
                rules: Some(vec![rule]),
                tls: certificate.map(|secret| vec![IngressTLS { hosts: Some(vec![host]), secret_name: Some(secret) }]),
                ..IngressSpec::default()
            }),
            ..Ingress::default()
        };
        Some((service, ingress))
    }

    /// Whom it may talk to, if not everybody.
    pub(crate) fn policy(&self, owner: &OwnerReference) -> Result<Option<NetworkPolicy>, ProviderError> {
        let Some(out) = network::out(&self.spec.network)? else { return Ok(None) };
        let mut egress = out.addresses;
        if out.gate.is_some() {
            egress.push(network::to_pods(self.gate_selector(), GATE_PORT));
        }
        let metadata = self.meta(self.id.as_str(), Some(owner));
        Ok(Some(network::policy(metadata, self.selector(), egress)))
    }
}
