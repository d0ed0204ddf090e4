/**
 * The fields of a pod's internal types in the Go kubelet v1.36, in their order: the UID of a static
 * pod is a hash of all of them. Each line has the name of a type and its fields. A field is
 * `Name:type`, `Name=json:type` when the JSON name cannot be derived from the name, or `Name^` for
 * a type whose fields are inlined in JSON. A field without a type is a string; a type without a
 * package belongs to `core`; `map` is a map of strings; a type without a line is a string. A type
 * with `?` is nil unless the manifest contains it, even if decoding has created an empty value.
 *
 * Never update this table only because of a new Kubernetes release: every static pod of every node
 * restarts when its UID changes.
 */
export const podTypes: string = `
Pod TypeMeta^v1.TypeMeta ObjectMeta=metadata:v1.ObjectMeta Spec:PodSpec Status:PodStatus
v1.TypeMeta Kind APIVersion
v1.ObjectMeta Name GenerateName Namespace SelfLink UID:types.UID ResourceVersion Generation:int64 CreationTimestamp:v1.Time DeletionTimestamp:*v1.Time DeletionGracePeriodSeconds:*int64 Labels:map Annotations:map OwnerReferences:[]v1.OwnerReference Finalizers:[]string ManagedFields:[]v1.ManagedFieldsEntry
v1.OwnerReference APIVersion Kind Name UID:types.UID Controller:*bool BlockOwnerDeletion:*bool
v1.ManagedFieldsEntry Manager Operation:v1.ManagedFieldsOperationType APIVersion Time:*v1.Time FieldsType FieldsV1:*v1.FieldsV1 Subresource
PodSpec Volumes:[]Volume InitContainers:[]Container Containers:[]Container EphemeralContainers:[]EphemeralContainer RestartPolicy:RestartPolicy TerminationGracePeriodSeconds:*int64 ActiveDeadlineSeconds:*int64 DNSPolicy:DNSPolicy NodeSelector:map ServiceAccountName AutomountServiceAccountToken:*bool NodeName SecurityContext:*PodSecurityContext ImagePullSecrets:[]LocalObjectReference Hostname Subdomain SetHostnameAsFQDN:*bool Affinity:*Affinity SchedulerName Tolerations:[]Toleration HostAliases:[]HostAlias PriorityClassName Priority:*int32 PreemptionPolicy:*PreemptionPolicy DNSConfig:*PodDNSConfig ReadinessGates:[]PodReadinessGate RuntimeClassName:*string Overhead:ResourceList EnableServiceLinks:*bool TopologySpreadConstraints:[]TopologySpreadConstraint OS:*PodOS SchedulingGates:[]PodSchedulingGate ResourceClaims:[]PodResourceClaim Resources:*ResourceRequirements HostnameOverride:*string SchedulingGroup:*PodSchedulingGroup
Volume Name VolumeSource^
VolumeSource HostPath:*HostPathVolumeSource EmptyDir:*EmptyDirVolumeSource GCEPersistentDisk:*GCEPersistentDiskVolumeSource AWSElasticBlockStore:*AWSElasticBlockStoreVolumeSource GitRepo:*GitRepoVolumeSource Secret:*SecretVolumeSource NFS:*NFSVolumeSource ISCSI:*ISCSIVolumeSource Glusterfs:*GlusterfsVolumeSource PersistentVolumeClaim:*PersistentVolumeClaimVolumeSource RBD:*RBDVolumeSource Quobyte:*QuobyteVolumeSource FlexVolume:*FlexVolumeSource Cinder:*CinderVolumeSource CephFS=cephfs:*CephFSVolumeSource Flocker:*FlockerVolumeSource DownwardAPI:*DownwardAPIVolumeSource FC:*FCVolumeSource AzureFile:*AzureFileVolumeSource ConfigMap:*ConfigMapVolumeSource VsphereVolume:*VsphereVirtualDiskVolumeSource AzureDisk:*AzureDiskVolumeSource PhotonPersistentDisk:*PhotonPersistentDiskVolumeSource Projected:*ProjectedVolumeSource PortworxVolume:*PortworxVolumeSource ScaleIO:*ScaleIOVolumeSource StorageOS=storageos:*StorageOSVolumeSource CSI:*CSIVolumeSource Ephemeral:*EphemeralVolumeSource Image:*ImageVolumeSource
HostPathVolumeSource Path Type:*HostPathType
EmptyDirVolumeSource Medium:StorageMedium SizeLimit:*resource.Quantity
GCEPersistentDiskVolumeSource PDName FSType Partition:int32 ReadOnly:bool
AWSElasticBlockStoreVolumeSource VolumeID FSType Partition:int32 ReadOnly:bool
GitRepoVolumeSource Repository Revision Directory
SecretVolumeSource SecretName Items:[]KeyToPath DefaultMode:*int32 Optional:*bool
KeyToPath Key Path Mode:*int32
NFSVolumeSource Server Path ReadOnly:bool
ISCSIVolumeSource TargetPortal IQN Lun:int32 ISCSIInterface FSType ReadOnly:bool Portals:[]string DiscoveryCHAPAuth=chapAuthDiscovery:bool SessionCHAPAuth=chapAuthSession:bool SecretRef:*LocalObjectReference InitiatorName:*string
LocalObjectReference Name
GlusterfsVolumeSource EndpointsName=endpoints Path ReadOnly:bool
PersistentVolumeClaimVolumeSource ClaimName ReadOnly:bool
RBDVolumeSource CephMonitors=monitors:[]string RBDImage=image FSType RBDPool=pool RadosUser=user Keyring SecretRef:*LocalObjectReference ReadOnly:bool
QuobyteVolumeSource Registry Volume ReadOnly:bool User Group Tenant
FlexVolumeSource Driver FSType SecretRef:*LocalObjectReference ReadOnly:bool Options:map
CinderVolumeSource VolumeID FSType ReadOnly:bool SecretRef:*LocalObjectReference
CephFSVolumeSource Monitors:[]string Path User SecretFile SecretRef:*LocalObjectReference ReadOnly:bool
FlockerVolumeSource DatasetName DatasetUUID
DownwardAPIVolumeSource Items:[]DownwardAPIVolumeFile DefaultMode:*int32
DownwardAPIVolumeFile Path FieldRef:*ObjectFieldSelector ResourceFieldRef:*ResourceFieldSelector Mode:*int32
ObjectFieldSelector APIVersion FieldPath
ResourceFieldSelector ContainerName Resource Divisor:resource.Quantity
FCVolumeSource TargetWWNs:[]string Lun:*int32 FSType ReadOnly:bool WWIDs=wwids:[]string
AzureFileVolumeSource SecretName ShareName ReadOnly:bool
ConfigMapVolumeSource LocalObjectReference^ Items:[]KeyToPath DefaultMode:*int32 Optional:*bool
VsphereVirtualDiskVolumeSource VolumePath FSType StoragePolicyName StoragePolicyID
AzureDiskVolumeSource DiskName DataDiskURI=diskURI CachingMode:*AzureDataDiskCachingMode FSType:*string ReadOnly:*bool Kind:*AzureDataDiskKind
PhotonPersistentDiskVolumeSource PdID FSType
ProjectedVolumeSource Sources:[]VolumeProjection DefaultMode:*int32
VolumeProjection Secret:*SecretProjection DownwardAPI:*DownwardAPIProjection ConfigMap:*ConfigMapProjection ServiceAccountToken:*ServiceAccountTokenProjection ClusterTrustBundle:*ClusterTrustBundleProjection PodCertificate:*PodCertificateProjection
SecretProjection LocalObjectReference^ Items:[]KeyToPath Optional:*bool
DownwardAPIProjection Items:[]DownwardAPIVolumeFile
ConfigMapProjection LocalObjectReference^ Items:[]KeyToPath Optional:*bool
ServiceAccountTokenProjection Audience ExpirationSeconds:int64 Path
ClusterTrustBundleProjection Name:*string SignerName:*string LabelSelector:*v1.LabelSelector Optional:*bool Path
v1.LabelSelector MatchLabels:map MatchExpressions:[]v1.LabelSelectorRequirement
v1.LabelSelectorRequirement Key Operator:v1.LabelSelectorOperator Values:[]string
PodCertificateProjection SignerName KeyType MaxExpirationSeconds:*int32 CredentialBundlePath KeyPath CertificateChainPath UserAnnotations:map
PortworxVolumeSource VolumeID FSType ReadOnly:bool
ScaleIOVolumeSource Gateway System SecretRef:?*LocalObjectReference SSLEnabled:bool ProtectionDomain StoragePool StorageMode VolumeName FSType ReadOnly:bool
StorageOSVolumeSource VolumeName VolumeNamespace FSType ReadOnly:bool SecretRef:*LocalObjectReference
CSIVolumeSource Driver ReadOnly:*bool FSType:*string VolumeAttributes:map NodePublishSecretRef:*LocalObjectReference
EphemeralVolumeSource VolumeClaimTemplate:*PersistentVolumeClaimTemplate
PersistentVolumeClaimTemplate ObjectMeta=metadata:v1.ObjectMeta Spec:PersistentVolumeClaimSpec
PersistentVolumeClaimSpec AccessModes:[]PersistentVolumeAccessMode Selector:*v1.LabelSelector Resources:VolumeResourceRequirements VolumeName StorageClassName:*string VolumeMode:*PersistentVolumeMode DataSource:*TypedLocalObjectReference DataSourceRef:*TypedObjectReference VolumeAttributesClassName:*string
VolumeResourceRequirements Limits:ResourceList Requests:ResourceList
TypedLocalObjectReference APIGroup:?*string Kind Name
TypedObjectReference APIGroup:?*string Kind Name Namespace:*string
ImageVolumeSource Reference PullPolicy:PullPolicy
Container Name Image Command:[]string Args:[]string WorkingDir Ports:[]ContainerPort EnvFrom:[]EnvFromSource Env:[]EnvVar Resources:ResourceRequirements ResizePolicy:[]ContainerResizePolicy RestartPolicy:*ContainerRestartPolicy RestartPolicyRules:[]ContainerRestartRule VolumeMounts:[]VolumeMount VolumeDevices:[]VolumeDevice LivenessProbe:*Probe ReadinessProbe:*Probe StartupProbe:*Probe Lifecycle:*Lifecycle TerminationMessagePath TerminationMessagePolicy:TerminationMessagePolicy ImagePullPolicy:PullPolicy SecurityContext:*SecurityContext Stdin:bool StdinOnce:bool TTY:bool
ContainerPort Name HostPort:int32 ContainerPort:int32 Protocol:Protocol HostIP
EnvFromSource Prefix ConfigMapRef:*ConfigMapEnvSource SecretRef:*SecretEnvSource
ConfigMapEnvSource LocalObjectReference^ Optional:*bool
SecretEnvSource LocalObjectReference^ Optional:*bool
EnvVar Name Value ValueFrom:*EnvVarSource
EnvVarSource FieldRef:*ObjectFieldSelector ResourceFieldRef:*ResourceFieldSelector ConfigMapKeyRef:*ConfigMapKeySelector SecretKeyRef:*SecretKeySelector FileKeyRef:*FileKeySelector
ConfigMapKeySelector LocalObjectReference^ Key Optional:*bool
SecretKeySelector LocalObjectReference^ Key Optional:*bool
FileKeySelector VolumeName Path Key Optional:*bool
ResourceRequirements Limits:ResourceList Requests:ResourceList Claims:[]ResourceClaim
ResourceClaim Name Request
ContainerResizePolicy ResourceName:ResourceName RestartPolicy:ResourceResizeRestartPolicy
ContainerRestartRule Action:ContainerRestartRuleAction ExitCodes:*ContainerRestartRuleOnExitCodes
ContainerRestartRuleOnExitCodes Operator:ContainerRestartRuleOnExitCodesOperator Values:[]int32
VolumeMount Name ReadOnly:bool RecursiveReadOnly:*RecursiveReadOnlyMode MountPath SubPath MountPropagation:*MountPropagationMode SubPathExpr
VolumeDevice Name DevicePath
Probe ProbeHandler^ InitialDelaySeconds:int32 TimeoutSeconds:int32 PeriodSeconds:int32 SuccessThreshold:int32 FailureThreshold:int32 TerminationGracePeriodSeconds:*int64
ProbeHandler Exec:*ExecAction HTTPGet:*HTTPGetAction TCPSocket:*TCPSocketAction GRPC:*GRPCAction
ExecAction Command:[]string
HTTPGetAction Path Port:intstr.IntOrString Host Scheme:URIScheme HTTPHeaders:[]HTTPHeader
HTTPHeader Name Value
TCPSocketAction Port:intstr.IntOrString Host
GRPCAction Port:int32 Service:*string
Lifecycle PostStart:*LifecycleHandler PreStop:*LifecycleHandler StopSignal:*Signal
LifecycleHandler Exec:*ExecAction HTTPGet:*HTTPGetAction TCPSocket:*TCPSocketAction Sleep:*SleepAction
SleepAction Seconds:int64
SecurityContext Capabilities:*Capabilities Privileged:*bool SELinuxOptions:*SELinuxOptions WindowsOptions:*WindowsSecurityContextOptions RunAsUser:*int64 RunAsGroup:*int64 RunAsNonRoot:*bool ReadOnlyRootFilesystem:*bool AllowPrivilegeEscalation:*bool ProcMount:*ProcMountType SeccompProfile:*SeccompProfile AppArmorProfile:*AppArmorProfile
Capabilities Add:[]Capability Drop:[]Capability
SELinuxOptions User Role Type Level
WindowsSecurityContextOptions GMSACredentialSpecName:*string GMSACredentialSpec:*string RunAsUserName:*string HostProcess:*bool
SeccompProfile Type:SeccompProfileType LocalhostProfile:*string
AppArmorProfile Type:AppArmorProfileType LocalhostProfile:*string
EphemeralContainer EphemeralContainerCommon^ TargetContainerName
EphemeralContainerCommon Name Image Command:[]string Args:[]string WorkingDir Ports:[]ContainerPort EnvFrom:[]EnvFromSource Env:[]EnvVar Resources:ResourceRequirements ResizePolicy:[]ContainerResizePolicy RestartPolicy:*ContainerRestartPolicy RestartPolicyRules:[]ContainerRestartRule VolumeMounts:[]VolumeMount VolumeDevices:[]VolumeDevice LivenessProbe:*Probe ReadinessProbe:*Probe StartupProbe:*Probe Lifecycle:*Lifecycle TerminationMessagePath TerminationMessagePolicy:TerminationMessagePolicy ImagePullPolicy:PullPolicy SecurityContext:*SecurityContext Stdin:bool StdinOnce:bool TTY:bool
PodSecurityContext HostNetwork:bool HostPID:bool HostIPC:bool ShareProcessNamespace:*bool HostUsers:*bool SELinuxOptions:*SELinuxOptions WindowsOptions:*WindowsSecurityContextOptions RunAsUser:*int64 RunAsGroup:*int64 RunAsNonRoot:*bool SupplementalGroups:[]int64 SupplementalGroupsPolicy:*SupplementalGroupsPolicy FSGroup:*int64 FSGroupChangePolicy:*PodFSGroupChangePolicy Sysctls:[]Sysctl SeccompProfile:*SeccompProfile AppArmorProfile:*AppArmorProfile SELinuxChangePolicy:*PodSELinuxChangePolicy
Sysctl Name Value
Affinity NodeAffinity:*NodeAffinity PodAffinity:*PodAffinity PodAntiAffinity:*PodAntiAffinity
NodeAffinity RequiredDuringSchedulingIgnoredDuringExecution:*NodeSelector PreferredDuringSchedulingIgnoredDuringExecution:[]PreferredSchedulingTerm
NodeSelector NodeSelectorTerms:[]NodeSelectorTerm
NodeSelectorTerm MatchExpressions:[]NodeSelectorRequirement MatchFields:[]NodeSelectorRequirement
NodeSelectorRequirement Key Operator:NodeSelectorOperator Values:[]string
PreferredSchedulingTerm Weight:int32 Preference:NodeSelectorTerm
PodAffinity RequiredDuringSchedulingIgnoredDuringExecution:[]PodAffinityTerm PreferredDuringSchedulingIgnoredDuringExecution:[]WeightedPodAffinityTerm
PodAffinityTerm LabelSelector:*v1.LabelSelector Namespaces:[]string TopologyKey NamespaceSelector:*v1.LabelSelector MatchLabelKeys:[]string MismatchLabelKeys:[]string
WeightedPodAffinityTerm Weight:int32 PodAffinityTerm:PodAffinityTerm
PodAntiAffinity RequiredDuringSchedulingIgnoredDuringExecution:[]PodAffinityTerm PreferredDuringSchedulingIgnoredDuringExecution:[]WeightedPodAffinityTerm
Toleration Key Operator:TolerationOperator Value Effect:TaintEffect TolerationSeconds:*int64
HostAlias IP Hostnames:[]string
PodDNSConfig Nameservers:[]string Searches:[]string Options:[]PodDNSConfigOption
PodDNSConfigOption Name Value:*string
PodReadinessGate ConditionType:PodConditionType
TopologySpreadConstraint MaxSkew:int32 TopologyKey WhenUnsatisfiable:UnsatisfiableConstraintAction LabelSelector:*v1.LabelSelector MinDomains:*int32 NodeAffinityPolicy:*NodeInclusionPolicy NodeTaintsPolicy:*NodeInclusionPolicy MatchLabelKeys:[]string
PodOS Name:OSName
PodSchedulingGate Name
PodResourceClaim Name ResourceClaimName:*string ResourceClaimTemplateName:*string
PodSchedulingGroup PodGroupName:*string
PodStatus ObservedGeneration:int64 Phase:PodPhase Conditions:[]PodCondition Message Reason NominatedNodeName HostIP HostIPs:[]HostIP PodIPs:[]PodIP StartTime:*v1.Time QOSClass:PodQOSClass InitContainerStatuses:[]ContainerStatus ContainerStatuses:[]ContainerStatus EphemeralContainerStatuses:[]ContainerStatus Resize:PodResizeStatus ResourceClaimStatuses:[]PodResourceClaimStatus ExtendedResourceClaimStatus:*PodExtendedResourceClaimStatus AllocatedResources:ResourceList Resources:*ResourceRequirements NodeAllocatableResourceClaimStatuses:[]NodeAllocatableResourceClaimStatus
PodCondition Type:PodConditionType ObservedGeneration:int64 Status:ConditionStatus LastProbeTime:v1.Time LastTransitionTime:v1.Time Reason Message
HostIP IP
PodIP IP
ContainerStatus Name State:ContainerState LastTerminationState=lastState:ContainerState Ready:bool RestartCount:int32 Image ImageID ContainerID Started:*bool AllocatedResources:ResourceList Resources:*ResourceRequirements VolumeMounts:[]VolumeMountStatus User:*ContainerUser AllocatedResourcesStatus:[]ResourceStatus StopSignal:*Signal
ContainerState Waiting:*ContainerStateWaiting Running:*ContainerStateRunning Terminated:*ContainerStateTerminated
ContainerStateWaiting Reason Message
ContainerStateRunning StartedAt:v1.Time
ContainerStateTerminated ExitCode:int32 Signal:int32 Reason Message StartedAt:v1.Time FinishedAt:v1.Time ContainerID
VolumeMountStatus Name MountPath ReadOnly:bool RecursiveReadOnly:*RecursiveReadOnlyMode VolumeStatus:*VolumeStatus
VolumeStatus Image:*ImageVolumeStatus
ImageVolumeStatus ImageRef
ContainerUser Linux:*LinuxContainerUser
LinuxContainerUser UID:int64 GID:int64 SupplementalGroups:[]int64
ResourceStatus Name:ResourceName Resources:[]ResourceHealth
ResourceHealth ResourceID:ResourceID Health:ResourceHealthStatus Message:*string
PodResourceClaimStatus Name ResourceClaimName:*string
PodExtendedResourceClaimStatus RequestMappings:[]ContainerExtendedResourceRequest ResourceClaimName
ContainerExtendedResourceRequest ContainerName ResourceName RequestName
NodeAllocatableResourceClaimStatus ResourceClaimName Containers:[]string Resources:?map[ResourceName]resource.Quantity
`;
