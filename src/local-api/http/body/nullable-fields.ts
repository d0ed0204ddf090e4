/**
 * In protobuf, fields of numbers, strings and truths are always sent by those who write Kubernetes objects, as 0, '' or
 * false if nobody set them; JSON leaves them out. Only for these fields does such a value say something: they are sent
 * when they were set, and not otherwise. One kind a line, with its fields behind it.
 */
const nullable = `
AppArmorProfile localhostProfile
AzureDiskVolumeSource cachingMode fsType readOnly kind
AzureFilePersistentVolumeSource secretNamespace
CSIDriverSpec attachRequired podInfoOnMount storageCapacity fsGroupPolicy requiresRepublish seLinuxMount nodeAllocatableUpdatePeriodSeconds serviceAccountTokenInSecrets preventPodSchedulingIfMissing
CSIVolumeSource readOnly fsType
CertificateSigningRequestSpec expirationSeconds
ClientIPConfig timeoutSeconds
ClusterTrustBundleProjection name signerName optional
ConfigMap immutable
ConfigMapEnvSource optional
ConfigMapKeySelector optional
ConfigMapProjection optional
ConfigMapVolumeSource defaultMode optional
Container restartPolicy
ContainerStatus started stopSignal
DeleteOptions gracePeriodSeconds orphanDependents propagationPolicy ignoreStoreReadErrorWithClusterBreakingPotential
DownwardAPIVolumeFile mode
DownwardAPIVolumeSource defaultMode
EndpointAddress nodeName
EndpointPort appProtocol
EphemeralContainerCommon restartPolicy
FCVolumeSource lun
FileKeySelector optional
GRPCAction service
GlusterfsPersistentVolumeSource endpointsNamespace
HostPathVolumeSource type
ISCSIPersistentVolumeSource initiatorName
ISCSIVolumeSource initiatorName
KeyToPath mode
LeaseSpec holderIdentity leaseDurationSeconds leaseTransitions strategy preferredHolder
Lifecycle stopSignal
ListMeta remainingItemCount
LoadBalancerIngress ipMode
LocalVolumeSource fsType
NodeFeatures supplementalGroupsPolicy
NodeRuntimeHandlerFeatures recursiveReadOnlyMounts userNamespaces
NodeSwapStatus capacity
ObjectMeta deletionGracePeriodSeconds
OwnerReference controller blockOwnerDeletion
PersistentVolumeClaimSpec storageClassName volumeMode volumeAttributesClassName
PersistentVolumeClaimStatus currentVolumeAttributesClassName
PersistentVolumeSpec volumeMode volumeAttributesClassName
PodCertificateProjection maxExpirationSeconds
PodDNSConfigOption value
PodDisruptionBudgetSpec unhealthyPodEvictionPolicy
PodResourceClaim resourceClaimName resourceClaimTemplateName
PodResourceClaimStatus resourceClaimName
PodSchedulingGroup podGroupName
PodSecurityContext runAsUser runAsGroup runAsNonRoot supplementalGroupsPolicy fsGroup fsGroupChangePolicy seLinuxChangePolicy
PodSpec terminationGracePeriodSeconds activeDeadlineSeconds automountServiceAccountToken shareProcessNamespace priority runtimeClassName enableServiceLinks preemptionPolicy setHostnameAsFQDN hostUsers hostnameOverride
PortStatus error
Preconditions uid resourceVersion
PriorityClass preemptionPolicy
Probe terminationGracePeriodSeconds
ProjectedVolumeSource defaultMode
ResourceHealth message
SeccompProfile localhostProfile
Secret immutable
SecretEnvSource optional
SecretKeySelector optional
SecretProjection optional
SecretVolumeSource defaultMode optional
SecurityContext privileged runAsUser runAsGroup runAsNonRoot readOnlyRootFilesystem allowPrivilegeEscalation procMount
ServiceAccount automountServiceAccountToken
ServiceAccountTokenProjection expirationSeconds
ServicePort appProtocol
ServiceSpec ipFamilyPolicy allocateLoadBalancerNodePorts loadBalancerClass internalTrafficPolicy trafficDistribution
StorageClass reclaimPolicy allowVolumeExpansion volumeBindingMode
TokenRequestSpec expirationSeconds
Toleration tolerationSeconds
TopologySpreadConstraint minDomains nodeAffinityPolicy nodeTaintsPolicy
TypedLocalObjectReference apiGroup
TypedObjectReference apiGroup namespace
VolumeAttachmentSource persistentVolumeName
VolumeError errorCode
VolumeMount recursiveReadOnly mountPropagation
VolumeMountStatus recursiveReadOnly
VolumeNodeResources count
WindowsSecurityContextOptions gmsaCredentialSpecName gmsaCredentialSpec runAsUserName hostProcess
`;

/** By kind: the fields that mean something even when they are 0, '' or false. */
export function nullableFields(): ReadonlyMap<string, ReadonlySet<string>> {
  const lines = nullable.trim().split('\n');
  return new Map(
    lines.map((line) => {
      const [kind = '', ...fields] = line.split(' ');
      return [kind, new Set(fields)];
    }),
  );
}
