/** OpenAPI attributes of fields that are missing in the generated table of API kinds. */
export interface FieldFacts {
  /** The x-kubernetes-list-type, if it differs from the strategic merge strategy. */
  readonly list?: 'atomic' | 'set' | 'none' | readonly string[];
  readonly enum?: readonly string[];
  /** Whether the field is required, if that differs from the generated table of API kinds. */
  readonly must?: 'be-given' | 'not';
}

const nothing: FieldFacts = {};

/**
 * The attributes parsed from lines such as `Kind.field map=a,b enum=X,Y optional` and `Kind
 * atomic`.
 */
export class SchemaFacts {
  readonly #facts: ReadonlyMap<string, FieldFacts>;

  constructor(text: string = schemaFacts()) {
    this.#facts = new Map(text.trim().split('\n').map(readLine));
  }

  of(kind: string, field: string): FieldFacts {
    return this.#facts.get(`${kind}.${field}`) ?? nothing;
  }

  /** Whether objects of the kind have x-kubernetes-map-type atomic. */
  isAtomic(kind: string): boolean {
    return this.#facts.get(kind)?.list === 'atomic';
  }
}

function readLine(line: string): readonly [string, FieldFacts] {
  const [name = '', ...words] = line.split(' ');
  return [name, Object.assign({}, ...words.map(readWord)) as FieldFacts];
}

function readWord(word: string): FieldFacts {
  const [name = '', value = ''] = word.split('=');
  const values = value.replaceAll('_', ' ').split(',');
  if (name === 'map') return { list: values };
  if (name === 'enum') return { enum: values };
  if (name === 'optional') return { must: 'not' };
  return name === 'required' ? { must: 'be-given' } : { list: name as 'atomic' | 'set' | 'none' };
}

function upTo(most: number): readonly number[] {
  return Array.from({ length: most }, (_, at) => at + 1);
}

/** The allowed values of a container's stop signal. */
function signalNames(): string {
  const plain =
    `ABRT ALRM BUS CHLD CLD CONT FPE HUP ILL INT IO IOT KILL PIPE POLL PROF PWR QUIT SEGV STKFLT STOP SYS
    TERM TRAP TSTP TTIN TTOU URG USR1 USR2 VTALRM WINCH XCPU XFSZ`.split(/\s+/);
  const real = [...upTo(15).map((at) => `RTMIN+${at}`), ...upTo(14).map((at) => `RTMAX-${at}`)];
  return [...plain, 'RTMIN', 'RTMAX', ...real]
    .map((name) => `SIG${name}`)
    .sort()
    .join(',');
}

/** The attributes as text, with one line per field; an underscore in a value stands for a space. */
function schemaFacts(): string {
  const signals = signalNames();
  return `
AppArmorProfile.type enum=Localhost,RuntimeDefault,Unconfined
AzureDiskVolumeSource.cachingMode enum=None,ReadOnly,ReadWrite
AzureDiskVolumeSource.kind enum=Dedicated,Managed,Shared
AzureFilePersistentVolumeSource.secretNamespace optional
CSIDriverSpec.volumeLifecycleModes set
CSINodeDriver.topologyKeys optional
CertificateSigningRequestSpec.usages enum=any,cert_sign,client_auth,code_signing,content_commitment,crl_sign,data_encipherment,decipher_only,digital_signature,email_protection,encipher_only,ipsec_end_system,ipsec_tunnel,ipsec_user,key_agreement,key_encipherment,microsoft_sgc,netscape_sgc,ocsp_signing,s/mime,server_auth,signing,timestamping
CertificateSigningRequestStatus.conditions map=type
ConfigMapKeySelector atomic
Container.imagePullPolicy enum=Always,IfNotPresent,Never
Container.ports map=containerPort,protocol
Container.terminationMessagePolicy enum=FallbackToLogsOnError,File
ContainerImage.names optional
ContainerPort.protocol enum=SCTP,TCP,UDP
ContainerRestartRule.action required
ContainerRestartRuleOnExitCodes.operator required
ContainerRestartRuleOnExitCodes.values set
ContainerStatus.stopSignal enum=${signals}
EndpointAddress atomic
EndpointPort atomic
EndpointPort.protocol enum=SCTP,TCP,UDP
EphemeralContainer.imagePullPolicy enum=Always,IfNotPresent,Never
EphemeralContainer.ports map=containerPort,protocol
EphemeralContainer.terminationMessagePolicy enum=FallbackToLogsOnError,File
Event.reportingComponent optional
Event.reportingInstance optional
EventsEvent.eventTime required
EventsEvent.metadata optional
EventsEventSeries.lastObservedTime required
FileKeySelector atomic
GRPCAction.service optional
HTTPGetAction.scheme enum=HTTP,HTTPS
HostPathVolumeSource.type enum=,BlockDevice,CharDevice,Directory,DirectoryOrCreate,File,FileOrCreate,Socket
ImageVolumeSource.pullPolicy enum=Always,IfNotPresent,Never
ImageVolumeStatus.imageRef required
LabelSelector atomic
Lifecycle.stopSignal enum=${signals}
LocalObjectReference atomic
ModifyVolumeStatus.status enum=InProgress,Infeasible,Pending
NamespaceStatus.phase enum=Active,Terminating
NodeAllocatableResourceClaimStatus.containers set
NodeRuntimeHandler.name optional
NodeSelector atomic
NodeSelectorRequirement.operator enum=DoesNotExist,Exists,Gt,In,Lt,NotIn
NodeSelectorTerm atomic
NodeStatus.phase enum=Pending,Running,Terminated
ObjectFieldSelector atomic
ObjectReference atomic
OwnerReference atomic
PersistentVolumeClaimSpec.accessModes enum=ReadOnlyMany,ReadWriteMany,ReadWriteOnce,ReadWriteOncePod
PersistentVolumeClaimSpec.volumeMode enum=Block,Filesystem
PersistentVolumeClaimStatus.accessModes enum=ReadOnlyMany,ReadWriteMany,ReadWriteOnce,ReadWriteOncePod
PersistentVolumeClaimStatus.phase enum=Bound,Lost,Pending
PersistentVolumeSpec.accessModes enum=ReadOnlyMany,ReadWriteMany,ReadWriteOnce,ReadWriteOncePod
PersistentVolumeSpec.persistentVolumeReclaimPolicy enum=Delete,Recycle,Retain
PersistentVolumeSpec.volumeMode enum=Block,Filesystem
PersistentVolumeStatus.phase enum=Available,Bound,Failed,Pending,Released
PodCertificateProjection.keyType required
PodCertificateProjection.signerName required
PodDisruptionBudgetSpec.unhealthyPodEvictionPolicy enum=AlwaysAllow,IfHealthyBudget
PodDisruptionBudgetStatus.currentHealthy optional
PodDisruptionBudgetStatus.desiredHealthy optional
PodDisruptionBudgetStatus.disruptionsAllowed optional
PodDisruptionBudgetStatus.expectedPods optional
PodSecurityContext.fsGroupChangePolicy enum=Always,OnRootMismatch
PodSecurityContext.supplementalGroupsPolicy enum=Merge,Strict
PodSpec.dnsPolicy enum=ClusterFirst,ClusterFirstWithHostNet,Default,None
PodSpec.nodeSelector atomic
PodSpec.preemptionPolicy enum=Never,PreemptLowerPriority
PodSpec.restartPolicy enum=Always,Never,OnFailure
PodSpec.topologySpreadConstraints map=topologyKey,whenUnsatisfiable
PodStatus.hostIPs atomic
PodStatus.phase enum=Failed,Pending,Running,Succeeded,Unknown
PodStatus.qosClass enum=BestEffort,Burstable,Guaranteed
PortStatus.protocol enum=SCTP,TCP,UDP
PriorityClass.preemptionPolicy enum=Never,PreemptLowerPriority
PriorityClass.value optional
ProjectedVolumeSource.sources optional
ResourceFieldSelector atomic
ResourceQuotaSpec.scopes enum=BestEffort,CrossNamespacePodAffinity,NotBestEffort,NotTerminating,PriorityClass,Terminating,VolumeAttributesClass
ResourceRequirements.claims map=name
ResourceStatus.resources map=resourceID
RuntimeClassScheduling.nodeSelector atomic
ScopeSelector atomic
ScopedResourceSelectorRequirement.operator enum=DoesNotExist,Exists,In,NotIn
ScopedResourceSelectorRequirement.scopeName enum=BestEffort,CrossNamespacePodAffinity,NotBestEffort,NotTerminating,PriorityClass,Terminating,VolumeAttributesClass
SeccompProfile.type enum=Localhost,RuntimeDefault,Unconfined
SecretKeySelector atomic
SecretReference atomic
SecurityContext.procMount enum=Default,Unmasked
ServicePort.protocol enum=SCTP,TCP,UDP
ServiceSpec.externalTrafficPolicy enum=Cluster,Local
ServiceSpec.internalTrafficPolicy enum=Cluster,Local
ServiceSpec.ipFamilies enum=,IPv4,IPv6
ServiceSpec.ipFamilyPolicy enum=PreferDualStack,RequireDualStack,SingleStack
ServiceSpec.ports map=port,protocol
ServiceSpec.selector atomic
ServiceSpec.sessionAffinity enum=ClientIP,None
ServiceSpec.type enum=ClusterIP,ExternalName,LoadBalancer,NodePort
StorageClass.reclaimPolicy enum=Delete,Recycle,Retain
StorageClass.volumeBindingMode enum=Immediate,WaitForFirstConsumer
Taint.effect enum=NoExecute,NoSchedule,PreferNoSchedule
TokenRequest.spec optional
TokenRequestSpec.audiences optional
TokenRequestStatus.expirationTimestamp optional
TokenRequestStatus.token optional
TokenReviewSpec.token required
Toleration.effect enum=NoExecute,NoSchedule,PreferNoSchedule
Toleration.operator enum=Equal,Exists,Gt,Lt
TopologySpreadConstraint.nodeAffinityPolicy enum=Honor,Ignore
TopologySpreadConstraint.nodeTaintsPolicy enum=Honor,Ignore
TopologySpreadConstraint.whenUnsatisfiable enum=DoNotSchedule,ScheduleAnyway
TopologySelectorTerm atomic
TypedLocalObjectReference atomic
TypedLocalObjectReference.apiGroup optional
TypedObjectReference.apiGroup optional
VolumeMount.mountPropagation enum=Bidirectional,HostToContainer,None
`;
}
