import { isJsonObject, type JsonObject } from '../../../api/index.ts';
import type { KindField, KindTable } from '../../../kinds/index.ts';

/**
 * Protobuf clients always send numbers, strings and booleans, with the zero value if unset; JSON
 * omits unset fields. The fields in this list are the only ones whose zero value differs from
 * unset: they are pointers in Go and are sent only when set. Each line is a kind followed by its
 * fields.
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

/** The fields whose zero value differs from unset, by kind. */
export function nullableFields(): ReadonlyMap<string, ReadonlySet<string>> {
  const lines = nullable.trim().split('\n');
  return new Map(
    lines.map((line) => {
      const [kind = '', ...fields] = line.split(' ');
      return [kind, new Set(fields)];
    }),
  );
}

/**
 * Removes empty lists, empty maps and zero values that mean the same as unset, so that objects
 * written with and without them are stored alike.
 */
export class ZeroValueFilter {
  readonly #table: KindTable;
  readonly #nullable = nullableFields();
  readonly #meaningful = new Map<string, ReadonlySet<string>>();

  constructor(table: KindTable) {
    this.#table = table;
  }

  /** Removes the zero values of an object that was decoded as this kind. */
  filter(kind: string, object: JsonObject): JsonObject {
    const fields = this.#table.fieldsOf(kind);
    const meaningful = this.#meaningfulFieldsOf(kind);
    return Object.fromEntries(
      Object.entries(object).flatMap(([name, value]) => {
        const field = fields.get(name);
        if (field === undefined) return [[name, value]];
        const isKept = field.required || meaningful.has(name) || !isZeroValue(field, value);
        return isKept ? [[name, this.#within(field, value)]] : [];
      }),
    );
  }

  #within({ type, shape }: KindField, value: unknown): unknown {
    if (!this.#table.has(type)) return value;
    if (shape === 'list' && Array.isArray(value)) return value.map((item) => this.#object(type, item));
    if (shape === 'map' && isJsonObject(value))
      return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, this.#object(type, item)]));
    return this.#object(type, value);
  }

  #object(type: string, value: unknown): unknown {
    return isJsonObject(value) ? this.filter(type, value) : value;
  }

  /** The fields of the kind and of its inlined kinds whose zero value differs from unset. */
  #meaningfulFieldsOf(kind: string): ReadonlySet<string> {
    const known = this.#meaningful.get(kind);
    if (known !== undefined) return known;
    const inlined = [...this.#table.wireOf(kind).values()].filter(({ place }) => place === 'inlined');
    const own = this.#nullable.get(kind) ?? [];
    const all = new Set([...own, ...inlined.flatMap(({ type }) => [...this.#meaningfulFieldsOf(type)])]);
    this.#meaningful.set(kind, all);
    return all;
  }
}

const plainTypes: ReadonlySet<string> = new Set(['string', 'bool', 'int32', 'int64', 'bytes']);

function isZeroValue({ shape, type }: KindField, value: unknown): boolean {
  if (shape === 'list') return Array.isArray(value) && value.length === 0;
  if (shape === 'map') return isJsonObject(value) && Object.keys(value).length === 0;
  return plainTypes.has(type) && (value === '' || value === 0 || value === false);
}
