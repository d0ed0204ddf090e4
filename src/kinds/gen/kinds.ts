// Made from the .proto files of this package by `npm run generate`; do not edit.

export interface TokenRequest {
  readonly apiVersion?: string | undefined;
  readonly kind?: string | undefined;
  readonly metadata?: ObjectMeta | undefined;
  readonly spec: TokenRequestSpec;
  readonly status?: TokenRequestStatus | undefined;
}
export interface TokenReview {
  readonly apiVersion?: string | undefined;
  readonly kind?: string | undefined;
  readonly metadata?: ObjectMeta | undefined;
  readonly spec: TokenReviewSpec;
  readonly status?: TokenReviewStatus | undefined;
}
export interface SelfSubjectReview {
  readonly apiVersion?: string | undefined;
  readonly kind?: string | undefined;
  readonly metadata?: ObjectMeta | undefined;
  readonly status?: SelfSubjectReviewStatus | undefined;
}
export interface TokenRequestSpec {
  readonly audiences: readonly string[];
  readonly expirationSeconds?: number | undefined;
  readonly boundObjectRef?: BoundObjectReference | undefined;
}
export interface TokenRequestStatus {
  readonly token: string;
  readonly expirationTimestamp: string;
}
export interface TokenReviewSpec {
  readonly token?: string | undefined;
  readonly audiences?: readonly string[] | undefined;
}
export interface TokenReviewStatus {
  readonly authenticated?: boolean | undefined;
  readonly user?: UserInfo | undefined;
  readonly audiences?: readonly string[] | undefined;
  readonly error?: string | undefined;
}
export interface SelfSubjectReviewStatus {
  readonly userInfo?: UserInfo | undefined;
}
export interface BoundObjectReference {
  readonly kind?: string | undefined;
  readonly apiVersion?: string | undefined;
  readonly name?: string | undefined;
  readonly uid?: string | undefined;
}
export interface UserInfo {
  readonly username?: string | undefined;
  readonly uid?: string | undefined;
  readonly groups?: readonly string[] | undefined;
  readonly extra?: Readonly<Record<string, readonly string[]>> | undefined;
}
export interface SelfSubjectAccessReview {
  readonly apiVersion?: string | undefined;
  readonly kind?: string | undefined;
  readonly metadata?: ObjectMeta | undefined;
  readonly spec: SelfSubjectAccessReviewSpec;
  readonly status?: SubjectAccessReviewStatus | undefined;
}
export interface SelfSubjectRulesReview {
  readonly apiVersion?: string | undefined;
  readonly kind?: string | undefined;
  readonly metadata?: ObjectMeta | undefined;
  readonly spec: SelfSubjectRulesReviewSpec;
  readonly status?: SubjectRulesReviewStatus | undefined;
}
export interface SubjectAccessReview {
  readonly apiVersion?: string | undefined;
  readonly kind?: string | undefined;
  readonly metadata?: ObjectMeta | undefined;
  readonly spec: SubjectAccessReviewSpec;
  readonly status?: SubjectAccessReviewStatus | undefined;
}
export interface LocalSubjectAccessReview {
  readonly apiVersion?: string | undefined;
  readonly kind?: string | undefined;
  readonly metadata?: ObjectMeta | undefined;
  readonly spec: SubjectAccessReviewSpec;
  readonly status?: SubjectAccessReviewStatus | undefined;
}
export interface SelfSubjectAccessReviewSpec {
  readonly resourceAttributes?: ResourceAttributes | undefined;
  readonly nonResourceAttributes?: NonResourceAttributes | undefined;
}
export interface SubjectAccessReviewStatus {
  readonly allowed: boolean;
  readonly denied?: boolean | undefined;
  readonly reason?: string | undefined;
  readonly evaluationError?: string | undefined;
}
export interface SelfSubjectRulesReviewSpec {
  readonly namespace?: string | undefined;
}
export interface SubjectRulesReviewStatus {
  readonly resourceRules: readonly ResourceRule[];
  readonly nonResourceRules: readonly NonResourceRule[];
  readonly incomplete: boolean;
  readonly evaluationError?: string | undefined;
}
export interface SubjectAccessReviewSpec {
  readonly resourceAttributes?: ResourceAttributes | undefined;
  readonly nonResourceAttributes?: NonResourceAttributes | undefined;
  readonly user?: string | undefined;
  readonly groups?: readonly string[] | undefined;
  readonly extra?: Readonly<Record<string, readonly string[]>> | undefined;
  readonly uid?: string | undefined;
}
export interface ResourceAttributes {
  readonly namespace?: string | undefined;
  readonly verb?: string | undefined;
  readonly group?: string | undefined;
  readonly version?: string | undefined;
  readonly resource?: string | undefined;
  readonly subresource?: string | undefined;
  readonly name?: string | undefined;
  readonly fieldSelector?: FieldSelectorAttributes | undefined;
  readonly labelSelector?: LabelSelectorAttributes | undefined;
}
export interface NonResourceAttributes {
  readonly path?: string | undefined;
  readonly verb?: string | undefined;
}
export interface ResourceRule {
  readonly verbs: readonly string[];
  readonly apiGroups?: readonly string[] | undefined;
  readonly resources?: readonly string[] | undefined;
  readonly resourceNames?: readonly string[] | undefined;
}
export interface NonResourceRule {
  readonly verbs: readonly string[];
  readonly nonResourceURLs?: readonly string[] | undefined;
}
export interface FieldSelectorAttributes {
  readonly rawSelector?: string | undefined;
  readonly requirements?: readonly FieldSelectorRequirement[] | undefined;
}
export interface LabelSelectorAttributes {
  readonly rawSelector?: string | undefined;
  readonly requirements?: readonly LabelSelectorRequirement[] | undefined;
}
export interface CertificateSigningRequest {
  readonly apiVersion?: string | undefined;
  readonly kind?: string | undefined;
  readonly metadata?: ObjectMeta | undefined;
  readonly spec: CertificateSigningRequestSpec;
  readonly status?: CertificateSigningRequestStatus | undefined;
}
export interface CertificateSigningRequestList {
  readonly apiVersion?: string | undefined;
  readonly kind?: string | undefined;
  readonly metadata?: ListMeta | undefined;
  readonly items: readonly CertificateSigningRequest[];
}
export interface CertificateSigningRequestSpec {
  readonly request: string;
  readonly signerName: string;
  readonly expirationSeconds?: number | undefined;
  readonly usages?: readonly string[] | undefined;
  readonly username?: string | undefined;
  readonly uid?: string | undefined;
  readonly groups?: readonly string[] | undefined;
  readonly extra?: Readonly<Record<string, readonly string[]>> | undefined;
}
export interface CertificateSigningRequestStatus {
  readonly conditions?: readonly CertificateSigningRequestCondition[] | undefined;
  readonly certificate?: string | undefined;
}
export interface CertificateSigningRequestCondition {
  readonly type: string;
  readonly status: string;
  readonly reason?: string | undefined;
  readonly message?: string | undefined;
  readonly lastUpdateTime?: string | undefined;
  readonly lastTransitionTime?: string | undefined;
}
export interface FieldSelectorRequirement {
  readonly key: string;
  readonly operator: string;
  readonly values?: readonly string[] | undefined;
}
export interface Endpoints {
  readonly apiVersion?: string | undefined;
  readonly kind?: string | undefined;
  readonly metadata?: ObjectMeta | undefined;
  readonly subsets?: readonly EndpointSubset[] | undefined;
}
export interface EndpointsList {
  readonly apiVersion?: string | undefined;
  readonly kind?: string | undefined;
  readonly metadata?: ListMeta | undefined;
  readonly items: readonly Endpoints[];
}
export interface ResourceQuota {
  readonly apiVersion?: string | undefined;
  readonly kind?: string | undefined;
  readonly metadata?: ObjectMeta | undefined;
  readonly spec?: ResourceQuotaSpec | undefined;
  readonly status?: ResourceQuotaStatus | undefined;
}
export interface ResourceQuotaList {
  readonly apiVersion?: string | undefined;
  readonly kind?: string | undefined;
  readonly metadata?: ListMeta | undefined;
  readonly items: readonly ResourceQuota[];
}
export interface LimitRange {
  readonly apiVersion?: string | undefined;
  readonly kind?: string | undefined;
  readonly metadata?: ObjectMeta | undefined;
  readonly spec?: LimitRangeSpec | undefined;
}
export interface LimitRangeList {
  readonly apiVersion?: string | undefined;
  readonly kind?: string | undefined;
  readonly metadata?: ListMeta | undefined;
  readonly items: readonly LimitRange[];
}
export interface EndpointSubset {
  readonly addresses?: readonly EndpointAddress[] | undefined;
  readonly notReadyAddresses?: readonly EndpointAddress[] | undefined;
  readonly ports?: readonly EndpointPort[] | undefined;
}
export interface ResourceQuotaSpec {
  readonly hard?: Readonly<Record<string, string>> | undefined;
  readonly scopes?: readonly string[] | undefined;
  readonly scopeSelector?: ScopeSelector | undefined;
}
export interface ResourceQuotaStatus {
  readonly hard?: Readonly<Record<string, string>> | undefined;
  readonly used?: Readonly<Record<string, string>> | undefined;
}
export interface LimitRangeSpec {
  readonly limits: readonly LimitRangeItem[];
}
export interface EndpointAddress {
  readonly ip: string;
  readonly hostname?: string | undefined;
  readonly nodeName?: string | undefined;
  readonly targetRef?: ObjectReference | undefined;
}
export interface EndpointPort {
  readonly name?: string | undefined;
  readonly port: number;
  readonly protocol?: string | undefined;
  readonly appProtocol?: string | undefined;
}
export interface ScopeSelector {
  readonly matchExpressions?: readonly ScopedResourceSelectorRequirement[] | undefined;
}
export interface LimitRangeItem {
  readonly type: string;
  readonly max?: Readonly<Record<string, string>> | undefined;
  readonly min?: Readonly<Record<string, string>> | undefined;
  readonly default?: Readonly<Record<string, string>> | undefined;
  readonly defaultRequest?: Readonly<Record<string, string>> | undefined;
  readonly maxLimitRequestRatio?: Readonly<Record<string, string>> | undefined;
}
export interface ScopedResourceSelectorRequirement {
  readonly scopeName: string;
  readonly operator: string;
  readonly values?: readonly string[] | undefined;
}
export interface Lease {
  readonly apiVersion?: string | undefined;
  readonly kind?: string | undefined;
  readonly metadata?: ObjectMeta | undefined;
  readonly spec?: LeaseSpec | undefined;
}
export interface LeaseList {
  readonly apiVersion?: string | undefined;
  readonly kind?: string | undefined;
  readonly metadata?: ListMeta | undefined;
  readonly items: readonly Lease[];
}
export interface LeaseSpec {
  readonly holderIdentity?: string | undefined;
  readonly leaseDurationSeconds?: number | undefined;
  readonly acquireTime?: string | undefined;
  readonly renewTime?: string | undefined;
  readonly leaseTransitions?: number | undefined;
  readonly strategy?: string | undefined;
  readonly preferredHolder?: string | undefined;
}
export interface Eviction {
  readonly apiVersion?: string | undefined;
  readonly kind?: string | undefined;
  readonly metadata?: ObjectMeta | undefined;
  readonly deleteOptions?: DeleteOptions | undefined;
}
export interface PodDisruptionBudget {
  readonly apiVersion?: string | undefined;
  readonly kind?: string | undefined;
  readonly metadata?: ObjectMeta | undefined;
  readonly spec?: PodDisruptionBudgetSpec | undefined;
  readonly status?: PodDisruptionBudgetStatus | undefined;
}
export interface PodDisruptionBudgetList {
  readonly apiVersion?: string | undefined;
  readonly kind?: string | undefined;
  readonly metadata?: ListMeta | undefined;
  readonly items: readonly PodDisruptionBudget[];
}
export interface PodDisruptionBudgetSpec {
  readonly minAvailable?: number | string | undefined;
  readonly selector?: LabelSelector | undefined;
  readonly maxUnavailable?: number | string | undefined;
  readonly unhealthyPodEvictionPolicy?: string | undefined;
}
export interface PodDisruptionBudgetStatus {
  readonly observedGeneration?: number | undefined;
  readonly disruptedPods?: Readonly<Record<string, string>> | undefined;
  readonly disruptionsAllowed: number;
  readonly currentHealthy: number;
  readonly desiredHealthy: number;
  readonly expectedPods: number;
  readonly conditions?: readonly Condition[] | undefined;
}
export interface RuntimeClass {
  readonly apiVersion?: string | undefined;
  readonly kind?: string | undefined;
  readonly metadata?: ObjectMeta | undefined;
  readonly handler: string;
  readonly overhead?: RuntimeClassOverhead | undefined;
  readonly scheduling?: RuntimeClassScheduling | undefined;
}
export interface RuntimeClassList {
  readonly apiVersion?: string | undefined;
  readonly kind?: string | undefined;
  readonly metadata?: ListMeta | undefined;
  readonly items: readonly RuntimeClass[];
}
export interface RuntimeClassOverhead {
  readonly podFixed?: Readonly<Record<string, string>> | undefined;
}
export interface RuntimeClassScheduling {
  readonly nodeSelector?: Readonly<Record<string, string>> | undefined;
  readonly tolerations?: readonly Toleration[] | undefined;
}
export interface PriorityClass {
  readonly apiVersion?: string | undefined;
  readonly kind?: string | undefined;
  readonly metadata?: ObjectMeta | undefined;
  readonly value: number;
  readonly globalDefault?: boolean | undefined;
  readonly description?: string | undefined;
  readonly preemptionPolicy?: string | undefined;
}
export interface PriorityClassList {
  readonly apiVersion?: string | undefined;
  readonly kind?: string | undefined;
  readonly metadata?: ListMeta | undefined;
  readonly items: readonly PriorityClass[];
}
export interface EventsEvent {
  readonly apiVersion?: string | undefined;
  readonly kind?: string | undefined;
  readonly metadata: ObjectMeta;
  readonly eventTime?: string | undefined;
  readonly series?: EventsEventSeries | undefined;
  readonly reportingController?: string | undefined;
  readonly reportingInstance?: string | undefined;
  readonly action?: string | undefined;
  readonly reason?: string | undefined;
  readonly regarding?: ObjectReference | undefined;
  readonly related?: ObjectReference | undefined;
  readonly note?: string | undefined;
  readonly type?: string | undefined;
  readonly deprecatedSource?: EventSource | undefined;
  readonly deprecatedFirstTimestamp?: string | undefined;
  readonly deprecatedLastTimestamp?: string | undefined;
  readonly deprecatedCount?: number | undefined;
}
export interface EventsEventList {
  readonly apiVersion?: string | undefined;
  readonly kind?: string | undefined;
  readonly metadata?: ListMeta | undefined;
  readonly items: readonly EventsEvent[];
}
export interface EventsEventSeries {
  readonly count: number;
  readonly lastObservedTime?: string | undefined;
}
export interface Container {
  readonly name: string;
  readonly image?: string | undefined;
  readonly command?: readonly string[] | undefined;
  readonly args?: readonly string[] | undefined;
  readonly workingDir?: string | undefined;
  readonly ports?: readonly ContainerPort[] | undefined;
  readonly envFrom?: readonly EnvFromSource[] | undefined;
  readonly env?: readonly EnvVar[] | undefined;
  readonly resources?: ResourceRequirements | undefined;
  readonly resizePolicy?: readonly ContainerResizePolicy[] | undefined;
  readonly restartPolicy?: string | undefined;
  readonly restartPolicyRules?: readonly ContainerRestartRule[] | undefined;
  readonly volumeMounts?: readonly VolumeMount[] | undefined;
  readonly volumeDevices?: readonly VolumeDevice[] | undefined;
  readonly livenessProbe?: Probe | undefined;
  readonly readinessProbe?: Probe | undefined;
  readonly startupProbe?: Probe | undefined;
  readonly lifecycle?: Lifecycle | undefined;
  readonly terminationMessagePath?: string | undefined;
  readonly terminationMessagePolicy?: string | undefined;
  readonly imagePullPolicy?: string | undefined;
  readonly securityContext?: SecurityContext | undefined;
  readonly stdin?: boolean | undefined;
  readonly stdinOnce?: boolean | undefined;
  readonly tty?: boolean | undefined;
}
export interface EphemeralContainer extends EphemeralContainerCommon {
  readonly targetContainerName?: string | undefined;
}
export interface LocalObjectReference {
  readonly name?: string | undefined;
}
export interface ResourceRequirements {
  readonly limits?: Readonly<Record<string, string>> | undefined;
  readonly requests?: Readonly<Record<string, string>> | undefined;
  readonly claims?: readonly ResourceClaim[] | undefined;
}
export interface ContainerStatus {
  readonly name: string;
  readonly state?: ContainerState | undefined;
  readonly lastState?: ContainerState | undefined;
  readonly ready: boolean;
  readonly restartCount: number;
  readonly image: string;
  readonly imageID: string;
  readonly containerID?: string | undefined;
  readonly started?: boolean | undefined;
  readonly allocatedResources?: Readonly<Record<string, string>> | undefined;
  readonly resources?: ResourceRequirements | undefined;
  readonly volumeMounts?: readonly VolumeMountStatus[] | undefined;
  readonly user?: ContainerUser | undefined;
  readonly allocatedResourcesStatus?: readonly ResourceStatus[] | undefined;
  readonly stopSignal?: string | undefined;
}
export interface NodeAllocatableResourceClaimStatus {
  readonly resourceClaimName: string;
  readonly containers?: readonly string[] | undefined;
  readonly resources: Readonly<Record<string, string>>;
}
export interface ContainerPort {
  readonly name?: string | undefined;
  readonly hostPort?: number | undefined;
  readonly containerPort: number;
  readonly protocol?: string | undefined;
  readonly hostIP?: string | undefined;
}
export interface EnvFromSource {
  readonly prefix?: string | undefined;
  readonly configMapRef?: ConfigMapEnvSource | undefined;
  readonly secretRef?: SecretEnvSource | undefined;
}
export interface EnvVar {
  readonly name: string;
  readonly value?: string | undefined;
  readonly valueFrom?: EnvVarSource | undefined;
}
export interface ContainerResizePolicy {
  readonly resourceName: string;
  readonly restartPolicy: string;
}
export interface ContainerRestartRule {
  readonly action?: string | undefined;
  readonly exitCodes?: ContainerRestartRuleOnExitCodes | undefined;
}
export interface Probe extends ProbeHandler {
  readonly initialDelaySeconds?: number | undefined;
  readonly timeoutSeconds?: number | undefined;
  readonly periodSeconds?: number | undefined;
  readonly successThreshold?: number | undefined;
  readonly failureThreshold?: number | undefined;
  readonly terminationGracePeriodSeconds?: number | undefined;
}
export interface Lifecycle {
  readonly postStart?: LifecycleHandler | undefined;
  readonly preStop?: LifecycleHandler | undefined;
  readonly stopSignal?: string | undefined;
}
export interface SecurityContext {
  readonly capabilities?: Capabilities | undefined;
  readonly privileged?: boolean | undefined;
  readonly seLinuxOptions?: SELinuxOptions | undefined;
  readonly windowsOptions?: WindowsSecurityContextOptions | undefined;
  readonly runAsUser?: number | undefined;
  readonly runAsGroup?: number | undefined;
  readonly runAsNonRoot?: boolean | undefined;
  readonly readOnlyRootFilesystem?: boolean | undefined;
  readonly allowPrivilegeEscalation?: boolean | undefined;
  readonly procMount?: string | undefined;
  readonly seccompProfile?: SeccompProfile | undefined;
  readonly appArmorProfile?: AppArmorProfile | undefined;
}
export interface EphemeralContainerCommon {
  readonly name: string;
  readonly image?: string | undefined;
  readonly command?: readonly string[] | undefined;
  readonly args?: readonly string[] | undefined;
  readonly workingDir?: string | undefined;
  readonly ports?: readonly ContainerPort[] | undefined;
  readonly envFrom?: readonly EnvFromSource[] | undefined;
  readonly env?: readonly EnvVar[] | undefined;
  readonly resources?: ResourceRequirements | undefined;
  readonly resizePolicy?: readonly ContainerResizePolicy[] | undefined;
  readonly restartPolicy?: string | undefined;
  readonly restartPolicyRules?: readonly ContainerRestartRule[] | undefined;
  readonly volumeMounts?: readonly VolumeMount[] | undefined;
  readonly volumeDevices?: readonly VolumeDevice[] | undefined;
  readonly livenessProbe?: Probe | undefined;
  readonly readinessProbe?: Probe | undefined;
  readonly startupProbe?: Probe | undefined;
  readonly lifecycle?: Lifecycle | undefined;
  readonly terminationMessagePath?: string | undefined;
  readonly terminationMessagePolicy?: string | undefined;
  readonly imagePullPolicy?: string | undefined;
  readonly securityContext?: SecurityContext | undefined;
  readonly stdin?: boolean | undefined;
  readonly stdinOnce?: boolean | undefined;
  readonly tty?: boolean | undefined;
}
export interface SELinuxOptions {
  readonly user?: string | undefined;
  readonly role?: string | undefined;
  readonly type?: string | undefined;
  readonly level?: string | undefined;
}
export interface WindowsSecurityContextOptions {
  readonly gmsaCredentialSpecName?: string | undefined;
  readonly gmsaCredentialSpec?: string | undefined;
  readonly runAsUserName?: string | undefined;
  readonly hostProcess?: boolean | undefined;
}
export interface SeccompProfile {
  readonly type: string;
  readonly localhostProfile?: string | undefined;
}
export interface AppArmorProfile {
  readonly type: string;
  readonly localhostProfile?: string | undefined;
}
export interface ResourceClaim {
  readonly name: string;
  readonly request?: string | undefined;
}
export interface ContainerState {
  readonly waiting?: ContainerStateWaiting | undefined;
  readonly running?: ContainerStateRunning | undefined;
  readonly terminated?: ContainerStateTerminated | undefined;
}
export interface ContainerUser {
  readonly linux?: LinuxContainerUser | undefined;
}
export interface ResourceStatus {
  readonly name: string;
  readonly resources?: readonly ResourceHealth[] | undefined;
}
export interface ContainerExtendedResourceRequest {
  readonly containerName: string;
  readonly resourceName: string;
  readonly requestName: string;
}
export interface ConfigMapEnvSource extends LocalObjectReference {
  readonly optional?: boolean | undefined;
}
export interface SecretEnvSource extends LocalObjectReference {
  readonly optional?: boolean | undefined;
}
export interface EnvVarSource {
  readonly fieldRef?: ObjectFieldSelector | undefined;
  readonly resourceFieldRef?: ResourceFieldSelector | undefined;
  readonly configMapKeyRef?: ConfigMapKeySelector | undefined;
  readonly secretKeyRef?: SecretKeySelector | undefined;
  readonly fileKeyRef?: FileKeySelector | undefined;
}
export interface ContainerRestartRuleOnExitCodes {
  readonly operator?: string | undefined;
  readonly values?: readonly number[] | undefined;
}
export interface ProbeHandler {
  readonly exec?: ExecAction | undefined;
  readonly httpGet?: HTTPGetAction | undefined;
  readonly tcpSocket?: TCPSocketAction | undefined;
  readonly grpc?: GRPCAction | undefined;
}
export interface LifecycleHandler {
  readonly exec?: ExecAction | undefined;
  readonly httpGet?: HTTPGetAction | undefined;
  readonly tcpSocket?: TCPSocketAction | undefined;
  readonly sleep?: SleepAction | undefined;
}
export interface Capabilities {
  readonly add?: readonly string[] | undefined;
  readonly drop?: readonly string[] | undefined;
}
export interface ContainerStateWaiting {
  readonly reason?: string | undefined;
  readonly message?: string | undefined;
}
export interface ContainerStateRunning {
  readonly startedAt?: string | undefined;
}
export interface ContainerStateTerminated {
  readonly exitCode: number;
  readonly signal?: number | undefined;
  readonly reason?: string | undefined;
  readonly message?: string | undefined;
  readonly startedAt?: string | undefined;
  readonly finishedAt?: string | undefined;
  readonly containerID?: string | undefined;
}
export interface LinuxContainerUser {
  readonly uid: number;
  readonly gid: number;
  readonly supplementalGroups?: readonly number[] | undefined;
}
export interface ResourceHealth {
  readonly resourceID: string;
  readonly health?: string | undefined;
  readonly message?: string | undefined;
}
export interface ObjectFieldSelector {
  readonly apiVersion?: string | undefined;
  readonly fieldPath: string;
}
export interface ResourceFieldSelector {
  readonly containerName?: string | undefined;
  readonly resource: string;
  readonly divisor?: string | undefined;
}
export interface ConfigMapKeySelector extends LocalObjectReference {
  readonly key: string;
  readonly optional?: boolean | undefined;
}
export interface SecretKeySelector extends LocalObjectReference {
  readonly key: string;
  readonly optional?: boolean | undefined;
}
export interface FileKeySelector {
  readonly volumeName: string;
  readonly path: string;
  readonly key: string;
  readonly optional?: boolean | undefined;
}
export interface ExecAction {
  readonly command?: readonly string[] | undefined;
}
export interface HTTPGetAction {
  readonly path?: string | undefined;
  readonly port: number | string;
  readonly host?: string | undefined;
  readonly scheme?: string | undefined;
  readonly httpHeaders?: readonly HTTPHeader[] | undefined;
}
export interface TCPSocketAction {
  readonly port: number | string;
  readonly host?: string | undefined;
}
export interface GRPCAction {
  readonly port: number;
  readonly service: string;
}
export interface SleepAction {
  readonly seconds: number;
}
export interface HTTPHeader {
  readonly name: string;
  readonly value: string;
}
export interface ObjectMeta {
  readonly name?: string | undefined;
  readonly generateName?: string | undefined;
  readonly namespace?: string | undefined;
  readonly selfLink?: string | undefined;
  readonly uid?: string | undefined;
  readonly resourceVersion?: string | undefined;
  readonly generation?: number | undefined;
  readonly creationTimestamp?: string | undefined;
  readonly deletionTimestamp?: string | undefined;
  readonly deletionGracePeriodSeconds?: number | undefined;
  readonly labels?: Readonly<Record<string, string>> | undefined;
  readonly annotations?: Readonly<Record<string, string>> | undefined;
  readonly ownerReferences?: readonly OwnerReference[] | undefined;
  readonly finalizers?: readonly string[] | undefined;
  readonly managedFields?: readonly ManagedFieldsEntry[] | undefined;
}
export interface ListMeta {
  readonly selfLink?: string | undefined;
  readonly resourceVersion?: string | undefined;
  readonly continue?: string | undefined;
  readonly remainingItemCount?: number | undefined;
  readonly shardInfo?: ShardInfo | undefined;
}
export interface LabelSelector {
  readonly matchLabels?: Readonly<Record<string, string>> | undefined;
  readonly matchExpressions?: readonly LabelSelectorRequirement[] | undefined;
}
export interface Status {
  readonly apiVersion?: string | undefined;
  readonly kind?: string | undefined;
  readonly metadata?: ListMeta | undefined;
  readonly status?: string | undefined;
  readonly message?: string | undefined;
  readonly reason?: string | undefined;
  readonly details?: StatusDetails | undefined;
  readonly code?: number | undefined;
}
export interface Condition {
  readonly type: string;
  readonly status: string;
  readonly observedGeneration?: number | undefined;
  readonly lastTransitionTime: string;
  readonly reason: string;
  readonly message: string;
}
export interface DeleteOptions {
  readonly apiVersion?: string | undefined;
  readonly kind?: string | undefined;
  readonly gracePeriodSeconds?: number | undefined;
  readonly preconditions?: Preconditions | undefined;
  readonly orphanDependents?: boolean | undefined;
  readonly propagationPolicy?: string | undefined;
  readonly dryRun?: readonly string[] | undefined;
  readonly ignoreStoreReadErrorWithClusterBreakingPotential?: boolean | undefined;
}
export interface OwnerReference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  readonly controller?: boolean | undefined;
  readonly blockOwnerDeletion?: boolean | undefined;
}
export interface ManagedFieldsEntry {
  readonly manager?: string | undefined;
  readonly operation?: string | undefined;
  readonly apiVersion?: string | undefined;
  readonly time?: string | undefined;
  readonly fieldsType?: string | undefined;
  readonly fieldsV1?: unknown | undefined;
  readonly subresource?: string | undefined;
}
export interface ShardInfo {
  readonly selector: string;
}
export interface LabelSelectorRequirement {
  readonly key: string;
  readonly operator: string;
  readonly values?: readonly string[] | undefined;
}
export interface StatusDetails {
  readonly name?: string | undefined;
  readonly group?: string | undefined;
  readonly kind?: string | undefined;
  readonly uid?: string | undefined;
  readonly causes?: readonly StatusCause[] | undefined;
  readonly retryAfterSeconds?: number | undefined;
}
export interface Preconditions {
  readonly uid?: string | undefined;
  readonly resourceVersion?: string | undefined;
}
export interface StatusCause {
  readonly reason?: string | undefined;
  readonly message?: string | undefined;
  readonly field?: string | undefined;
}
export interface Node {
  readonly apiVersion?: string | undefined;
  readonly kind?: string | undefined;
  readonly metadata?: ObjectMeta | undefined;
  readonly spec?: NodeSpec | undefined;
  readonly status?: NodeStatus | undefined;
}
export interface NodeList {
  readonly apiVersion?: string | undefined;
  readonly kind?: string | undefined;
  readonly metadata?: ListMeta | undefined;
  readonly items: readonly Node[];
}
export interface NodeSpec {
  readonly podCIDR?: string | undefined;
  readonly podCIDRs?: readonly string[] | undefined;
  readonly providerID?: string | undefined;
  readonly unschedulable?: boolean | undefined;
  readonly taints?: readonly Taint[] | undefined;
  readonly configSource?: NodeConfigSource | undefined;
  readonly externalID?: string | undefined;
}
export interface NodeStatus {
  readonly capacity?: Readonly<Record<string, string>> | undefined;
  readonly allocatable?: Readonly<Record<string, string>> | undefined;
  readonly phase?: string | undefined;
  readonly conditions?: readonly NodeCondition[] | undefined;
  readonly addresses?: readonly NodeAddress[] | undefined;
  readonly daemonEndpoints?: NodeDaemonEndpoints | undefined;
  readonly nodeInfo?: NodeSystemInfo | undefined;
  readonly images?: readonly ContainerImage[] | undefined;
  readonly volumesInUse?: readonly string[] | undefined;
  readonly volumesAttached?: readonly AttachedVolume[] | undefined;
  readonly config?: NodeConfigStatus | undefined;
  readonly runtimeHandlers?: readonly NodeRuntimeHandler[] | undefined;
  readonly features?: NodeFeatures | undefined;
  readonly declaredFeatures?: readonly string[] | undefined;
}
export interface Taint {
  readonly key: string;
  readonly value?: string | undefined;
  readonly effect: string;
  readonly timeAdded?: string | undefined;
}
export interface NodeConfigSource {
  readonly configMap?: ConfigMapNodeConfigSource | undefined;
}
export interface NodeCondition {
  readonly type: string;
  readonly status: string;
  readonly lastHeartbeatTime?: string | undefined;
  readonly lastTransitionTime?: string | undefined;
  readonly reason?: string | undefined;
  readonly message?: string | undefined;
}
export interface NodeAddress {
  readonly type: string;
  readonly address: string;
}
export interface NodeDaemonEndpoints {
  readonly kubeletEndpoint?: DaemonEndpoint | undefined;
}
export interface NodeSystemInfo {
  readonly machineID: string;
  readonly systemUUID: string;
  readonly bootID: string;
  readonly kernelVersion: string;
  readonly osImage: string;
  readonly containerRuntimeVersion: string;
  readonly kubeletVersion: string;
  readonly kubeProxyVersion: string;
  readonly operatingSystem: string;
  readonly architecture: string;
  readonly swap?: NodeSwapStatus | undefined;
}
export interface ContainerImage {
  readonly names: readonly string[];
  readonly sizeBytes?: number | undefined;
}
export interface AttachedVolume {
  readonly name: string;
  readonly devicePath: string;
}
export interface NodeConfigStatus {
  readonly assigned?: NodeConfigSource | undefined;
  readonly active?: NodeConfigSource | undefined;
  readonly lastKnownGood?: NodeConfigSource | undefined;
  readonly error?: string | undefined;
}
export interface NodeRuntimeHandler {
  readonly name: string;
  readonly features?: NodeRuntimeHandlerFeatures | undefined;
}
export interface NodeFeatures {
  readonly supplementalGroupsPolicy?: boolean | undefined;
}
export interface ConfigMapNodeConfigSource {
  readonly namespace: string;
  readonly name: string;
  readonly uid?: string | undefined;
  readonly resourceVersion?: string | undefined;
  readonly kubeletConfigKey: string;
}
export interface DaemonEndpoint {
  readonly Port: number;
}
export interface NodeSwapStatus {
  readonly capacity?: number | undefined;
}
export interface NodeRuntimeHandlerFeatures {
  readonly recursiveReadOnlyMounts?: boolean | undefined;
  readonly userNamespaces?: boolean | undefined;
}
export interface Event {
  readonly apiVersion?: string | undefined;
  readonly kind?: string | undefined;
  readonly metadata: ObjectMeta;
  readonly involvedObject: ObjectReference;
  readonly reason?: string | undefined;
  readonly message?: string | undefined;
  readonly source?: EventSource | undefined;
  readonly firstTimestamp?: string | undefined;
  readonly lastTimestamp?: string | undefined;
  readonly count?: number | undefined;
  readonly type?: string | undefined;
  readonly eventTime?: string | undefined;
  readonly series?: EventSeries | undefined;
  readonly action?: string | undefined;
  readonly related?: ObjectReference | undefined;
  readonly reportingComponent: string;
  readonly reportingInstance: string;
}
export interface EventList {
  readonly apiVersion?: string | undefined;
  readonly kind?: string | undefined;
  readonly metadata?: ListMeta | undefined;
  readonly items: readonly Event[];
}
export interface Secret {
  readonly apiVersion?: string | undefined;
  readonly kind?: string | undefined;
  readonly metadata?: ObjectMeta | undefined;
  readonly immutable?: boolean | undefined;
  readonly data?: Readonly<Record<string, string>> | undefined;
  readonly stringData?: Readonly<Record<string, string>> | undefined;
  readonly type?: string | undefined;
}
export interface SecretList {
  readonly apiVersion?: string | undefined;
  readonly kind?: string | undefined;
  readonly metadata?: ListMeta | undefined;
  readonly items: readonly Secret[];
}
export interface ConfigMap {
  readonly apiVersion?: string | undefined;
  readonly kind?: string | undefined;
  readonly metadata?: ObjectMeta | undefined;
  readonly immutable?: boolean | undefined;
  readonly data?: Readonly<Record<string, string>> | undefined;
  readonly binaryData?: Readonly<Record<string, string>> | undefined;
}
export interface ConfigMapList {
  readonly apiVersion?: string | undefined;
  readonly kind?: string | undefined;
  readonly metadata?: ListMeta | undefined;
  readonly items: readonly ConfigMap[];
}
export interface Service {
  readonly apiVersion?: string | undefined;
  readonly kind?: string | undefined;
  readonly metadata?: ObjectMeta | undefined;
  readonly spec?: ServiceSpec | undefined;
  readonly status?: ServiceStatus | undefined;
}
export interface ServiceList {
  readonly apiVersion?: string | undefined;
  readonly kind?: string | undefined;
  readonly metadata?: ListMeta | undefined;
  readonly items: readonly Service[];
}
export interface ServiceAccount {
  readonly apiVersion?: string | undefined;
  readonly kind?: string | undefined;
  readonly metadata?: ObjectMeta | undefined;
  readonly secrets?: readonly ObjectReference[] | undefined;
  readonly imagePullSecrets?: readonly LocalObjectReference[] | undefined;
  readonly automountServiceAccountToken?: boolean | undefined;
}
export interface ServiceAccountList {
  readonly apiVersion?: string | undefined;
  readonly kind?: string | undefined;
  readonly metadata?: ListMeta | undefined;
  readonly items: readonly ServiceAccount[];
}
export interface PersistentVolume {
  readonly apiVersion?: string | undefined;
  readonly kind?: string | undefined;
  readonly metadata?: ObjectMeta | undefined;
  readonly spec?: PersistentVolumeSpec | undefined;
  readonly status?: PersistentVolumeStatus | undefined;
}
export interface PersistentVolumeList {
  readonly apiVersion?: string | undefined;
  readonly kind?: string | undefined;
  readonly metadata?: ListMeta | undefined;
  readonly items: readonly PersistentVolume[];
}
export interface PersistentVolumeClaim {
  readonly apiVersion?: string | undefined;
  readonly kind?: string | undefined;
  readonly metadata?: ObjectMeta | undefined;
  readonly spec?: PersistentVolumeClaimSpec | undefined;
  readonly status?: PersistentVolumeClaimStatus | undefined;
}
export interface PersistentVolumeClaimList {
  readonly apiVersion?: string | undefined;
  readonly kind?: string | undefined;
  readonly metadata?: ListMeta | undefined;
  readonly items: readonly PersistentVolumeClaim[];
}
export interface Namespace {
  readonly apiVersion?: string | undefined;
  readonly kind?: string | undefined;
  readonly metadata?: ObjectMeta | undefined;
  readonly spec?: NamespaceSpec | undefined;
  readonly status?: NamespaceStatus | undefined;
}
export interface NamespaceList {
  readonly apiVersion?: string | undefined;
  readonly kind?: string | undefined;
  readonly metadata?: ListMeta | undefined;
  readonly items: readonly Namespace[];
}
export interface Binding {
  readonly apiVersion?: string | undefined;
  readonly kind?: string | undefined;
  readonly metadata?: ObjectMeta | undefined;
  readonly target: ObjectReference;
}
export interface ObjectReference {
  readonly kind?: string | undefined;
  readonly namespace?: string | undefined;
  readonly name?: string | undefined;
  readonly uid?: string | undefined;
  readonly apiVersion?: string | undefined;
  readonly resourceVersion?: string | undefined;
  readonly fieldPath?: string | undefined;
}
export interface EventSource {
  readonly component?: string | undefined;
  readonly host?: string | undefined;
}
export interface EventSeries {
  readonly count?: number | undefined;
  readonly lastObservedTime?: string | undefined;
}
export interface ServiceSpec {
  readonly ports?: readonly ServicePort[] | undefined;
  readonly selector?: Readonly<Record<string, string>> | undefined;
  readonly clusterIP?: string | undefined;
  readonly clusterIPs?: readonly string[] | undefined;
  readonly type?: string | undefined;
  readonly externalIPs?: readonly string[] | undefined;
  readonly sessionAffinity?: string | undefined;
  readonly loadBalancerIP?: string | undefined;
  readonly loadBalancerSourceRanges?: readonly string[] | undefined;
  readonly externalName?: string | undefined;
  readonly externalTrafficPolicy?: string | undefined;
  readonly healthCheckNodePort?: number | undefined;
  readonly publishNotReadyAddresses?: boolean | undefined;
  readonly sessionAffinityConfig?: SessionAffinityConfig | undefined;
  readonly ipFamilies?: readonly string[] | undefined;
  readonly ipFamilyPolicy?: string | undefined;
  readonly allocateLoadBalancerNodePorts?: boolean | undefined;
  readonly loadBalancerClass?: string | undefined;
  readonly internalTrafficPolicy?: string | undefined;
  readonly trafficDistribution?: string | undefined;
}
export interface ServiceStatus {
  readonly loadBalancer?: LoadBalancerStatus | undefined;
  readonly conditions?: readonly Condition[] | undefined;
}
export interface PersistentVolumeSpec extends PersistentVolumeSource {
  readonly capacity?: Readonly<Record<string, string>> | undefined;
  readonly accessModes?: readonly string[] | undefined;
  readonly claimRef?: ObjectReference | undefined;
  readonly persistentVolumeReclaimPolicy?: string | undefined;
  readonly storageClassName?: string | undefined;
  readonly mountOptions?: readonly string[] | undefined;
  readonly volumeMode?: string | undefined;
  readonly nodeAffinity?: VolumeNodeAffinity | undefined;
  readonly volumeAttributesClassName?: string | undefined;
}
export interface PersistentVolumeStatus {
  readonly phase?: string | undefined;
  readonly message?: string | undefined;
  readonly reason?: string | undefined;
  readonly lastPhaseTransitionTime?: string | undefined;
}
export interface PersistentVolumeClaimStatus {
  readonly phase?: string | undefined;
  readonly accessModes?: readonly string[] | undefined;
  readonly capacity?: Readonly<Record<string, string>> | undefined;
  readonly conditions?: readonly PersistentVolumeClaimCondition[] | undefined;
  readonly allocatedResources?: Readonly<Record<string, string>> | undefined;
  readonly allocatedResourceStatuses?: Readonly<Record<string, string>> | undefined;
  readonly currentVolumeAttributesClassName?: string | undefined;
  readonly modifyVolumeStatus?: ModifyVolumeStatus | undefined;
}
export interface NamespaceSpec {
  readonly finalizers?: readonly string[] | undefined;
}
export interface NamespaceStatus {
  readonly phase?: string | undefined;
  readonly conditions?: readonly NamespaceCondition[] | undefined;
}
export interface ServicePort {
  readonly name?: string | undefined;
  readonly protocol?: string | undefined;
  readonly appProtocol?: string | undefined;
  readonly port: number;
  readonly targetPort?: number | string | undefined;
  readonly nodePort?: number | undefined;
}
export interface SessionAffinityConfig {
  readonly clientIP?: ClientIPConfig | undefined;
}
export interface LoadBalancerStatus {
  readonly ingress?: readonly LoadBalancerIngress[] | undefined;
}
export interface PersistentVolumeSource {
  readonly gcePersistentDisk?: GCEPersistentDiskVolumeSource | undefined;
  readonly awsElasticBlockStore?: AWSElasticBlockStoreVolumeSource | undefined;
  readonly hostPath?: HostPathVolumeSource | undefined;
  readonly glusterfs?: GlusterfsPersistentVolumeSource | undefined;
  readonly nfs?: NFSVolumeSource | undefined;
  readonly rbd?: RBDPersistentVolumeSource | undefined;
  readonly iscsi?: ISCSIPersistentVolumeSource | undefined;
  readonly cinder?: CinderPersistentVolumeSource | undefined;
  readonly cephfs?: CephFSPersistentVolumeSource | undefined;
  readonly fc?: FCVolumeSource | undefined;
  readonly flocker?: FlockerVolumeSource | undefined;
  readonly flexVolume?: FlexPersistentVolumeSource | undefined;
  readonly azureFile?: AzureFilePersistentVolumeSource | undefined;
  readonly vsphereVolume?: VsphereVirtualDiskVolumeSource | undefined;
  readonly quobyte?: QuobyteVolumeSource | undefined;
  readonly azureDisk?: AzureDiskVolumeSource | undefined;
  readonly photonPersistentDisk?: PhotonPersistentDiskVolumeSource | undefined;
  readonly portworxVolume?: PortworxVolumeSource | undefined;
  readonly scaleIO?: ScaleIOPersistentVolumeSource | undefined;
  readonly local?: LocalVolumeSource | undefined;
  readonly storageos?: StorageOSPersistentVolumeSource | undefined;
  readonly csi?: CSIPersistentVolumeSource | undefined;
}
export interface VolumeNodeAffinity {
  readonly required?: NodeSelector | undefined;
}
export interface PersistentVolumeClaimCondition {
  readonly type: string;
  readonly status: string;
  readonly lastProbeTime?: string | undefined;
  readonly lastTransitionTime?: string | undefined;
  readonly reason?: string | undefined;
  readonly message?: string | undefined;
}
export interface ModifyVolumeStatus {
  readonly targetVolumeAttributesClassName?: string | undefined;
  readonly status: string;
}
export interface NamespaceCondition {
  readonly type: string;
  readonly status: string;
  readonly lastTransitionTime?: string | undefined;
  readonly reason?: string | undefined;
  readonly message?: string | undefined;
}
export interface ClientIPConfig {
  readonly timeoutSeconds?: number | undefined;
}
export interface LoadBalancerIngress {
  readonly ip?: string | undefined;
  readonly hostname?: string | undefined;
  readonly ipMode?: string | undefined;
  readonly ports?: readonly PortStatus[] | undefined;
}
export interface GlusterfsPersistentVolumeSource {
  readonly endpoints: string;
  readonly path: string;
  readonly readOnly?: boolean | undefined;
  readonly endpointsNamespace?: string | undefined;
}
export interface RBDPersistentVolumeSource {
  readonly monitors: readonly string[];
  readonly image: string;
  readonly fsType?: string | undefined;
  readonly pool?: string | undefined;
  readonly user?: string | undefined;
  readonly keyring?: string | undefined;
  readonly secretRef?: SecretReference | undefined;
  readonly readOnly?: boolean | undefined;
}
export interface ISCSIPersistentVolumeSource {
  readonly targetPortal: string;
  readonly iqn: string;
  readonly lun: number;
  readonly iscsiInterface?: string | undefined;
  readonly fsType?: string | undefined;
  readonly readOnly?: boolean | undefined;
  readonly portals?: readonly string[] | undefined;
  readonly chapAuthDiscovery?: boolean | undefined;
  readonly chapAuthSession?: boolean | undefined;
  readonly secretRef?: SecretReference | undefined;
  readonly initiatorName?: string | undefined;
}
export interface CinderPersistentVolumeSource {
  readonly volumeID: string;
  readonly fsType?: string | undefined;
  readonly readOnly?: boolean | undefined;
  readonly secretRef?: SecretReference | undefined;
}
export interface CephFSPersistentVolumeSource {
  readonly monitors: readonly string[];
  readonly path?: string | undefined;
  readonly user?: string | undefined;
  readonly secretFile?: string | undefined;
  readonly secretRef?: SecretReference | undefined;
  readonly readOnly?: boolean | undefined;
}
export interface FlexPersistentVolumeSource {
  readonly driver: string;
  readonly fsType?: string | undefined;
  readonly secretRef?: SecretReference | undefined;
  readonly readOnly?: boolean | undefined;
  readonly options?: Readonly<Record<string, string>> | undefined;
}
export interface AzureFilePersistentVolumeSource {
  readonly secretName: string;
  readonly shareName: string;
  readonly readOnly?: boolean | undefined;
  readonly secretNamespace: string;
}
export interface ScaleIOPersistentVolumeSource {
  readonly gateway: string;
  readonly system: string;
  readonly secretRef: SecretReference;
  readonly sslEnabled?: boolean | undefined;
  readonly protectionDomain?: string | undefined;
  readonly storagePool?: string | undefined;
  readonly storageMode?: string | undefined;
  readonly volumeName?: string | undefined;
  readonly fsType?: string | undefined;
  readonly readOnly?: boolean | undefined;
}
export interface LocalVolumeSource {
  readonly path: string;
  readonly fsType?: string | undefined;
}
export interface StorageOSPersistentVolumeSource {
  readonly volumeName?: string | undefined;
  readonly volumeNamespace?: string | undefined;
  readonly fsType?: string | undefined;
  readonly readOnly?: boolean | undefined;
  readonly secretRef?: ObjectReference | undefined;
}
export interface CSIPersistentVolumeSource {
  readonly driver: string;
  readonly volumeHandle: string;
  readonly readOnly?: boolean | undefined;
  readonly fsType?: string | undefined;
  readonly volumeAttributes?: Readonly<Record<string, string>> | undefined;
  readonly controllerPublishSecretRef?: SecretReference | undefined;
  readonly nodeStageSecretRef?: SecretReference | undefined;
  readonly nodePublishSecretRef?: SecretReference | undefined;
  readonly controllerExpandSecretRef?: SecretReference | undefined;
  readonly nodeExpandSecretRef?: SecretReference | undefined;
}
export interface PortStatus {
  readonly port: number;
  readonly protocol: string;
  readonly error?: string | undefined;
}
export interface SecretReference {
  readonly name?: string | undefined;
  readonly namespace?: string | undefined;
}
export interface Pod {
  readonly apiVersion?: string | undefined;
  readonly kind?: string | undefined;
  readonly metadata?: ObjectMeta | undefined;
  readonly spec?: PodSpec | undefined;
  readonly status?: PodStatus | undefined;
}
export interface PodList {
  readonly apiVersion?: string | undefined;
  readonly kind?: string | undefined;
  readonly metadata?: ListMeta | undefined;
  readonly items: readonly Pod[];
}
export interface PodSpec {
  readonly volumes?: readonly Volume[] | undefined;
  readonly initContainers?: readonly Container[] | undefined;
  readonly containers: readonly Container[];
  readonly ephemeralContainers?: readonly EphemeralContainer[] | undefined;
  readonly restartPolicy?: string | undefined;
  readonly terminationGracePeriodSeconds?: number | undefined;
  readonly activeDeadlineSeconds?: number | undefined;
  readonly dnsPolicy?: string | undefined;
  readonly nodeSelector?: Readonly<Record<string, string>> | undefined;
  readonly serviceAccountName?: string | undefined;
  readonly serviceAccount?: string | undefined;
  readonly automountServiceAccountToken?: boolean | undefined;
  readonly nodeName?: string | undefined;
  readonly hostNetwork?: boolean | undefined;
  readonly hostPID?: boolean | undefined;
  readonly hostIPC?: boolean | undefined;
  readonly shareProcessNamespace?: boolean | undefined;
  readonly securityContext?: PodSecurityContext | undefined;
  readonly imagePullSecrets?: readonly LocalObjectReference[] | undefined;
  readonly hostname?: string | undefined;
  readonly subdomain?: string | undefined;
  readonly affinity?: Affinity | undefined;
  readonly schedulerName?: string | undefined;
  readonly tolerations?: readonly Toleration[] | undefined;
  readonly hostAliases?: readonly HostAlias[] | undefined;
  readonly priorityClassName?: string | undefined;
  readonly priority?: number | undefined;
  readonly dnsConfig?: PodDNSConfig | undefined;
  readonly readinessGates?: readonly PodReadinessGate[] | undefined;
  readonly runtimeClassName?: string | undefined;
  readonly enableServiceLinks?: boolean | undefined;
  readonly preemptionPolicy?: string | undefined;
  readonly overhead?: Readonly<Record<string, string>> | undefined;
  readonly topologySpreadConstraints?: readonly TopologySpreadConstraint[] | undefined;
  readonly setHostnameAsFQDN?: boolean | undefined;
  readonly os?: PodOS | undefined;
  readonly hostUsers?: boolean | undefined;
  readonly schedulingGates?: readonly PodSchedulingGate[] | undefined;
  readonly resourceClaims?: readonly PodResourceClaim[] | undefined;
  readonly resources?: ResourceRequirements | undefined;
  readonly hostnameOverride?: string | undefined;
  readonly schedulingGroup?: PodSchedulingGroup | undefined;
}
export interface PodStatus {
  readonly observedGeneration?: number | undefined;
  readonly phase?: string | undefined;
  readonly conditions?: readonly PodCondition[] | undefined;
  readonly message?: string | undefined;
  readonly reason?: string | undefined;
  readonly nominatedNodeName?: string | undefined;
  readonly hostIP?: string | undefined;
  readonly hostIPs?: readonly HostIP[] | undefined;
  readonly podIP?: string | undefined;
  readonly podIPs?: readonly PodIP[] | undefined;
  readonly startTime?: string | undefined;
  readonly initContainerStatuses?: readonly ContainerStatus[] | undefined;
  readonly containerStatuses?: readonly ContainerStatus[] | undefined;
  readonly qosClass?: string | undefined;
  readonly ephemeralContainerStatuses?: readonly ContainerStatus[] | undefined;
  readonly resize?: string | undefined;
  readonly resourceClaimStatuses?: readonly PodResourceClaimStatus[] | undefined;
  readonly extendedResourceClaimStatus?: PodExtendedResourceClaimStatus | undefined;
  readonly allocatedResources?: Readonly<Record<string, string>> | undefined;
  readonly resources?: ResourceRequirements | undefined;
  readonly nodeAllocatableResourceClaimStatuses?: readonly NodeAllocatableResourceClaimStatus[] | undefined;
}
export interface PodSecurityContext {
  readonly seLinuxOptions?: SELinuxOptions | undefined;
  readonly windowsOptions?: WindowsSecurityContextOptions | undefined;
  readonly runAsUser?: number | undefined;
  readonly runAsGroup?: number | undefined;
  readonly runAsNonRoot?: boolean | undefined;
  readonly supplementalGroups?: readonly number[] | undefined;
  readonly supplementalGroupsPolicy?: string | undefined;
  readonly fsGroup?: number | undefined;
  readonly sysctls?: readonly Sysctl[] | undefined;
  readonly fsGroupChangePolicy?: string | undefined;
  readonly seccompProfile?: SeccompProfile | undefined;
  readonly appArmorProfile?: AppArmorProfile | undefined;
  readonly seLinuxChangePolicy?: string | undefined;
}
export interface HostAlias {
  readonly ip: string;
  readonly hostnames?: readonly string[] | undefined;
}
export interface PodDNSConfig {
  readonly nameservers?: readonly string[] | undefined;
  readonly searches?: readonly string[] | undefined;
  readonly options?: readonly PodDNSConfigOption[] | undefined;
}
export interface PodReadinessGate {
  readonly conditionType: string;
}
export interface PodOS {
  readonly name: string;
}
export interface PodSchedulingGate {
  readonly name: string;
}
export interface PodResourceClaim {
  readonly name: string;
  readonly resourceClaimName?: string | undefined;
  readonly resourceClaimTemplateName?: string | undefined;
}
export interface PodSchedulingGroup {
  readonly podGroupName?: string | undefined;
}
export interface PodCondition {
  readonly type: string;
  readonly observedGeneration?: number | undefined;
  readonly status: string;
  readonly lastProbeTime?: string | undefined;
  readonly lastTransitionTime?: string | undefined;
  readonly reason?: string | undefined;
  readonly message?: string | undefined;
}
export interface HostIP {
  readonly ip: string;
}
export interface PodIP {
  readonly ip: string;
}
export interface PodResourceClaimStatus {
  readonly name: string;
  readonly resourceClaimName?: string | undefined;
}
export interface PodExtendedResourceClaimStatus {
  readonly requestMappings: readonly ContainerExtendedResourceRequest[];
  readonly resourceClaimName: string;
}
export interface Sysctl {
  readonly name: string;
  readonly value: string;
}
export interface PodDNSConfigOption {
  readonly name?: string | undefined;
  readonly value?: string | undefined;
}
export interface Affinity {
  readonly nodeAffinity?: NodeAffinity | undefined;
  readonly podAffinity?: PodAffinity | undefined;
  readonly podAntiAffinity?: PodAntiAffinity | undefined;
}
export interface Toleration {
  readonly key?: string | undefined;
  readonly operator?: string | undefined;
  readonly value?: string | undefined;
  readonly effect?: string | undefined;
  readonly tolerationSeconds?: number | undefined;
}
export interface TopologySpreadConstraint {
  readonly maxSkew: number;
  readonly topologyKey: string;
  readonly whenUnsatisfiable: string;
  readonly labelSelector?: LabelSelector | undefined;
  readonly minDomains?: number | undefined;
  readonly nodeAffinityPolicy?: string | undefined;
  readonly nodeTaintsPolicy?: string | undefined;
  readonly matchLabelKeys?: readonly string[] | undefined;
}
export interface NodeAffinity {
  readonly requiredDuringSchedulingIgnoredDuringExecution?: NodeSelector | undefined;
  readonly preferredDuringSchedulingIgnoredDuringExecution?: readonly PreferredSchedulingTerm[] | undefined;
}
export interface PodAffinity {
  readonly requiredDuringSchedulingIgnoredDuringExecution?: readonly PodAffinityTerm[] | undefined;
  readonly preferredDuringSchedulingIgnoredDuringExecution?: readonly WeightedPodAffinityTerm[] | undefined;
}
export interface PodAntiAffinity {
  readonly requiredDuringSchedulingIgnoredDuringExecution?: readonly PodAffinityTerm[] | undefined;
  readonly preferredDuringSchedulingIgnoredDuringExecution?: readonly WeightedPodAffinityTerm[] | undefined;
}
export interface NodeSelector {
  readonly nodeSelectorTerms: readonly NodeSelectorTerm[];
}
export interface PreferredSchedulingTerm {
  readonly weight: number;
  readonly preference: NodeSelectorTerm;
}
export interface PodAffinityTerm {
  readonly labelSelector?: LabelSelector | undefined;
  readonly namespaces?: readonly string[] | undefined;
  readonly topologyKey: string;
  readonly namespaceSelector?: LabelSelector | undefined;
  readonly matchLabelKeys?: readonly string[] | undefined;
  readonly mismatchLabelKeys?: readonly string[] | undefined;
}
export interface WeightedPodAffinityTerm {
  readonly weight: number;
  readonly podAffinityTerm: PodAffinityTerm;
}
export interface NodeSelectorTerm {
  readonly matchExpressions?: readonly NodeSelectorRequirement[] | undefined;
  readonly matchFields?: readonly NodeSelectorRequirement[] | undefined;
}
export interface NodeSelectorRequirement {
  readonly key: string;
  readonly operator: string;
  readonly values?: readonly string[] | undefined;
}
export interface CSINode {
  readonly apiVersion?: string | undefined;
  readonly kind?: string | undefined;
  readonly metadata?: ObjectMeta | undefined;
  readonly spec: CSINodeSpec;
}
export interface CSINodeList {
  readonly apiVersion?: string | undefined;
  readonly kind?: string | undefined;
  readonly metadata?: ListMeta | undefined;
  readonly items: readonly CSINode[];
}
export interface CSIDriver {
  readonly apiVersion?: string | undefined;
  readonly kind?: string | undefined;
  readonly metadata?: ObjectMeta | undefined;
  readonly spec: CSIDriverSpec;
}
export interface CSIDriverList {
  readonly apiVersion?: string | undefined;
  readonly kind?: string | undefined;
  readonly metadata?: ListMeta | undefined;
  readonly items: readonly CSIDriver[];
}
export interface StorageClass {
  readonly apiVersion?: string | undefined;
  readonly kind?: string | undefined;
  readonly metadata?: ObjectMeta | undefined;
  readonly provisioner: string;
  readonly parameters?: Readonly<Record<string, string>> | undefined;
  readonly reclaimPolicy?: string | undefined;
  readonly mountOptions?: readonly string[] | undefined;
  readonly allowVolumeExpansion?: boolean | undefined;
  readonly volumeBindingMode?: string | undefined;
  readonly allowedTopologies?: readonly TopologySelectorTerm[] | undefined;
}
export interface StorageClassList {
  readonly apiVersion?: string | undefined;
  readonly kind?: string | undefined;
  readonly metadata?: ListMeta | undefined;
  readonly items: readonly StorageClass[];
}
export interface VolumeAttachment {
  readonly apiVersion?: string | undefined;
  readonly kind?: string | undefined;
  readonly metadata?: ObjectMeta | undefined;
  readonly spec: VolumeAttachmentSpec;
  readonly status?: VolumeAttachmentStatus | undefined;
}
export interface VolumeAttachmentList {
  readonly apiVersion?: string | undefined;
  readonly kind?: string | undefined;
  readonly metadata?: ListMeta | undefined;
  readonly items: readonly VolumeAttachment[];
}
export interface CSINodeSpec {
  readonly drivers: readonly CSINodeDriver[];
}
export interface CSIDriverSpec {
  readonly attachRequired?: boolean | undefined;
  readonly podInfoOnMount?: boolean | undefined;
  readonly volumeLifecycleModes?: readonly string[] | undefined;
  readonly storageCapacity?: boolean | undefined;
  readonly fsGroupPolicy?: string | undefined;
  readonly tokenRequests?: readonly CSIDriverTokenRequest[] | undefined;
  readonly requiresRepublish?: boolean | undefined;
  readonly seLinuxMount?: boolean | undefined;
  readonly nodeAllocatableUpdatePeriodSeconds?: number | undefined;
  readonly serviceAccountTokenInSecrets?: boolean | undefined;
  readonly preventPodSchedulingIfMissing?: boolean | undefined;
}
export interface VolumeAttachmentSpec {
  readonly attacher: string;
  readonly source: VolumeAttachmentSource;
  readonly nodeName: string;
}
export interface VolumeAttachmentStatus {
  readonly attached: boolean;
  readonly attachmentMetadata?: Readonly<Record<string, string>> | undefined;
  readonly attachError?: VolumeError | undefined;
  readonly detachError?: VolumeError | undefined;
}
export interface CSINodeDriver {
  readonly name: string;
  readonly nodeID: string;
  readonly topologyKeys: readonly string[];
  readonly allocatable?: VolumeNodeResources | undefined;
}
export interface CSIDriverTokenRequest {
  readonly audience: string;
  readonly expirationSeconds?: number | undefined;
}
export interface VolumeAttachmentSource {
  readonly persistentVolumeName?: string | undefined;
  readonly inlineVolumeSpec?: PersistentVolumeSpec | undefined;
}
export interface VolumeError {
  readonly time?: string | undefined;
  readonly message?: string | undefined;
  readonly errorCode?: number | undefined;
}
export interface VolumeNodeResources {
  readonly count?: number | undefined;
}
export interface TopologySelectorTerm {
  readonly matchLabelExpressions?: readonly TopologySelectorLabelRequirement[] | undefined;
}
export interface TopologySelectorLabelRequirement {
  readonly key: string;
  readonly values: readonly string[];
}
export interface Volume extends VolumeSource {
  readonly name: string;
}
export interface VolumeSource {
  readonly hostPath?: HostPathVolumeSource | undefined;
  readonly emptyDir?: EmptyDirVolumeSource | undefined;
  readonly gcePersistentDisk?: GCEPersistentDiskVolumeSource | undefined;
  readonly awsElasticBlockStore?: AWSElasticBlockStoreVolumeSource | undefined;
  readonly gitRepo?: GitRepoVolumeSource | undefined;
  readonly secret?: SecretVolumeSource | undefined;
  readonly nfs?: NFSVolumeSource | undefined;
  readonly iscsi?: ISCSIVolumeSource | undefined;
  readonly glusterfs?: GlusterfsVolumeSource | undefined;
  readonly persistentVolumeClaim?: PersistentVolumeClaimVolumeSource | undefined;
  readonly rbd?: RBDVolumeSource | undefined;
  readonly flexVolume?: FlexVolumeSource | undefined;
  readonly cinder?: CinderVolumeSource | undefined;
  readonly cephfs?: CephFSVolumeSource | undefined;
  readonly flocker?: FlockerVolumeSource | undefined;
  readonly downwardAPI?: DownwardAPIVolumeSource | undefined;
  readonly fc?: FCVolumeSource | undefined;
  readonly azureFile?: AzureFileVolumeSource | undefined;
  readonly configMap?: ConfigMapVolumeSource | undefined;
  readonly vsphereVolume?: VsphereVirtualDiskVolumeSource | undefined;
  readonly quobyte?: QuobyteVolumeSource | undefined;
  readonly azureDisk?: AzureDiskVolumeSource | undefined;
  readonly photonPersistentDisk?: PhotonPersistentDiskVolumeSource | undefined;
  readonly projected?: ProjectedVolumeSource | undefined;
  readonly portworxVolume?: PortworxVolumeSource | undefined;
  readonly scaleIO?: ScaleIOVolumeSource | undefined;
  readonly storageos?: StorageOSVolumeSource | undefined;
  readonly csi?: CSIVolumeSource | undefined;
  readonly ephemeral?: EphemeralVolumeSource | undefined;
  readonly image?: ImageVolumeSource | undefined;
}
export interface VolumeMount {
  readonly name: string;
  readonly readOnly?: boolean | undefined;
  readonly recursiveReadOnly?: string | undefined;
  readonly mountPath: string;
  readonly subPath?: string | undefined;
  readonly mountPropagation?: string | undefined;
  readonly subPathExpr?: string | undefined;
}
export interface VolumeDevice {
  readonly name: string;
  readonly devicePath: string;
}
export interface VolumeMountStatus {
  readonly name: string;
  readonly mountPath: string;
  readonly readOnly?: boolean | undefined;
  readonly recursiveReadOnly?: string | undefined;
  readonly volumeStatus?: VolumeStatus | undefined;
}
export interface HostPathVolumeSource {
  readonly path: string;
  readonly type?: string | undefined;
}
export interface EmptyDirVolumeSource {
  readonly medium?: string | undefined;
  readonly sizeLimit?: string | undefined;
}
export interface GCEPersistentDiskVolumeSource {
  readonly pdName: string;
  readonly fsType?: string | undefined;
  readonly partition?: number | undefined;
  readonly readOnly?: boolean | undefined;
}
export interface AWSElasticBlockStoreVolumeSource {
  readonly volumeID: string;
  readonly fsType?: string | undefined;
  readonly partition?: number | undefined;
  readonly readOnly?: boolean | undefined;
}
export interface GitRepoVolumeSource {
  readonly repository: string;
  readonly revision?: string | undefined;
  readonly directory?: string | undefined;
}
export interface SecretVolumeSource {
  readonly secretName?: string | undefined;
  readonly items?: readonly KeyToPath[] | undefined;
  readonly defaultMode?: number | undefined;
  readonly optional?: boolean | undefined;
}
export interface NFSVolumeSource {
  readonly server: string;
  readonly path: string;
  readonly readOnly?: boolean | undefined;
}
export interface ISCSIVolumeSource {
  readonly targetPortal: string;
  readonly iqn: string;
  readonly lun: number;
  readonly iscsiInterface?: string | undefined;
  readonly fsType?: string | undefined;
  readonly readOnly?: boolean | undefined;
  readonly portals?: readonly string[] | undefined;
  readonly chapAuthDiscovery?: boolean | undefined;
  readonly chapAuthSession?: boolean | undefined;
  readonly secretRef?: LocalObjectReference | undefined;
  readonly initiatorName?: string | undefined;
}
export interface GlusterfsVolumeSource {
  readonly endpoints: string;
  readonly path: string;
  readonly readOnly?: boolean | undefined;
}
export interface PersistentVolumeClaimVolumeSource {
  readonly claimName: string;
  readonly readOnly?: boolean | undefined;
}
export interface RBDVolumeSource {
  readonly monitors: readonly string[];
  readonly image: string;
  readonly fsType?: string | undefined;
  readonly pool?: string | undefined;
  readonly user?: string | undefined;
  readonly keyring?: string | undefined;
  readonly secretRef?: LocalObjectReference | undefined;
  readonly readOnly?: boolean | undefined;
}
export interface FlexVolumeSource {
  readonly driver: string;
  readonly fsType?: string | undefined;
  readonly secretRef?: LocalObjectReference | undefined;
  readonly readOnly?: boolean | undefined;
  readonly options?: Readonly<Record<string, string>> | undefined;
}
export interface CinderVolumeSource {
  readonly volumeID: string;
  readonly fsType?: string | undefined;
  readonly readOnly?: boolean | undefined;
  readonly secretRef?: LocalObjectReference | undefined;
}
export interface CephFSVolumeSource {
  readonly monitors: readonly string[];
  readonly path?: string | undefined;
  readonly user?: string | undefined;
  readonly secretFile?: string | undefined;
  readonly secretRef?: LocalObjectReference | undefined;
  readonly readOnly?: boolean | undefined;
}
export interface FlockerVolumeSource {
  readonly datasetName?: string | undefined;
  readonly datasetUUID?: string | undefined;
}
export interface DownwardAPIVolumeSource {
  readonly items?: readonly DownwardAPIVolumeFile[] | undefined;
  readonly defaultMode?: number | undefined;
}
export interface FCVolumeSource {
  readonly targetWWNs?: readonly string[] | undefined;
  readonly lun?: number | undefined;
  readonly fsType?: string | undefined;
  readonly readOnly?: boolean | undefined;
  readonly wwids?: readonly string[] | undefined;
}
export interface AzureFileVolumeSource {
  readonly secretName: string;
  readonly shareName: string;
  readonly readOnly?: boolean | undefined;
}
export interface ConfigMapVolumeSource extends LocalObjectReference {
  readonly items?: readonly KeyToPath[] | undefined;
  readonly defaultMode?: number | undefined;
  readonly optional?: boolean | undefined;
}
export interface VsphereVirtualDiskVolumeSource {
  readonly volumePath: string;
  readonly fsType?: string | undefined;
  readonly storagePolicyName?: string | undefined;
  readonly storagePolicyID?: string | undefined;
}
export interface QuobyteVolumeSource {
  readonly registry: string;
  readonly volume: string;
  readonly readOnly?: boolean | undefined;
  readonly user?: string | undefined;
  readonly group?: string | undefined;
  readonly tenant?: string | undefined;
}
export interface AzureDiskVolumeSource {
  readonly diskName: string;
  readonly diskURI: string;
  readonly cachingMode?: string | undefined;
  readonly fsType?: string | undefined;
  readonly readOnly?: boolean | undefined;
  readonly kind?: string | undefined;
}
export interface PhotonPersistentDiskVolumeSource {
  readonly pdID: string;
  readonly fsType?: string | undefined;
}
export interface ProjectedVolumeSource {
  readonly sources: readonly VolumeProjection[];
  readonly defaultMode?: number | undefined;
}
export interface PortworxVolumeSource {
  readonly volumeID: string;
  readonly fsType?: string | undefined;
  readonly readOnly?: boolean | undefined;
}
export interface ScaleIOVolumeSource {
  readonly gateway: string;
  readonly system: string;
  readonly secretRef: LocalObjectReference;
  readonly sslEnabled?: boolean | undefined;
  readonly protectionDomain?: string | undefined;
  readonly storagePool?: string | undefined;
  readonly storageMode?: string | undefined;
  readonly volumeName?: string | undefined;
  readonly fsType?: string | undefined;
  readonly readOnly?: boolean | undefined;
}
export interface StorageOSVolumeSource {
  readonly volumeName?: string | undefined;
  readonly volumeNamespace?: string | undefined;
  readonly fsType?: string | undefined;
  readonly readOnly?: boolean | undefined;
  readonly secretRef?: LocalObjectReference | undefined;
}
export interface CSIVolumeSource {
  readonly driver: string;
  readonly readOnly?: boolean | undefined;
  readonly fsType?: string | undefined;
  readonly volumeAttributes?: Readonly<Record<string, string>> | undefined;
  readonly nodePublishSecretRef?: LocalObjectReference | undefined;
}
export interface EphemeralVolumeSource {
  readonly volumeClaimTemplate?: PersistentVolumeClaimTemplate | undefined;
}
export interface ImageVolumeSource {
  readonly reference?: string | undefined;
  readonly pullPolicy?: string | undefined;
}
export interface VolumeStatus {
  readonly image?: ImageVolumeStatus | undefined;
}
export interface KeyToPath {
  readonly key: string;
  readonly path: string;
  readonly mode?: number | undefined;
}
export interface DownwardAPIVolumeFile {
  readonly path: string;
  readonly fieldRef?: ObjectFieldSelector | undefined;
  readonly resourceFieldRef?: ResourceFieldSelector | undefined;
  readonly mode?: number | undefined;
}
export interface VolumeProjection {
  readonly secret?: SecretProjection | undefined;
  readonly downwardAPI?: DownwardAPIProjection | undefined;
  readonly configMap?: ConfigMapProjection | undefined;
  readonly serviceAccountToken?: ServiceAccountTokenProjection | undefined;
  readonly clusterTrustBundle?: ClusterTrustBundleProjection | undefined;
  readonly podCertificate?: PodCertificateProjection | undefined;
}
export interface PersistentVolumeClaimTemplate {
  readonly apiVersion?: string | undefined;
  readonly kind?: string | undefined;
  readonly metadata?: ObjectMeta | undefined;
  readonly spec: PersistentVolumeClaimSpec;
}
export interface ImageVolumeStatus {
  readonly imageRef?: string | undefined;
}
export interface SecretProjection extends LocalObjectReference {
  readonly items?: readonly KeyToPath[] | undefined;
  readonly optional?: boolean | undefined;
}
export interface DownwardAPIProjection {
  readonly items?: readonly DownwardAPIVolumeFile[] | undefined;
}
export interface ConfigMapProjection extends LocalObjectReference {
  readonly items?: readonly KeyToPath[] | undefined;
  readonly optional?: boolean | undefined;
}
export interface ServiceAccountTokenProjection {
  readonly audience?: string | undefined;
  readonly expirationSeconds?: number | undefined;
  readonly path: string;
}
export interface ClusterTrustBundleProjection {
  readonly name?: string | undefined;
  readonly signerName?: string | undefined;
  readonly labelSelector?: LabelSelector | undefined;
  readonly optional?: boolean | undefined;
  readonly path: string;
}
export interface PodCertificateProjection {
  readonly signerName?: string | undefined;
  readonly keyType?: string | undefined;
  readonly maxExpirationSeconds?: number | undefined;
  readonly credentialBundlePath?: string | undefined;
  readonly keyPath?: string | undefined;
  readonly certificateChainPath?: string | undefined;
  readonly userAnnotations?: Readonly<Record<string, string>> | undefined;
}
export interface PersistentVolumeClaimSpec {
  readonly accessModes?: readonly string[] | undefined;
  readonly selector?: LabelSelector | undefined;
  readonly resources?: VolumeResourceRequirements | undefined;
  readonly volumeName?: string | undefined;
  readonly storageClassName?: string | undefined;
  readonly volumeMode?: string | undefined;
  readonly dataSource?: TypedLocalObjectReference | undefined;
  readonly dataSourceRef?: TypedObjectReference | undefined;
  readonly volumeAttributesClassName?: string | undefined;
}
export interface VolumeResourceRequirements {
  readonly limits?: Readonly<Record<string, string>> | undefined;
  readonly requests?: Readonly<Record<string, string>> | undefined;
}
export interface TypedLocalObjectReference {
  readonly apiGroup: string;
  readonly kind: string;
  readonly name: string;
}
export interface TypedObjectReference {
  readonly apiGroup: string;
  readonly kind: string;
  readonly name: string;
  readonly namespace?: string | undefined;
}
/** One line a type: `Name|number name [list|map|inline] type [+required] [key=…] [merge] [retain]`. */
export const kindTable = `
TokenRequest|1 metadata ObjectMeta|2 spec TokenRequestSpec +required|3 status TokenRequestStatus
TokenReview|1 metadata ObjectMeta|2 spec TokenReviewSpec +required|3 status TokenReviewStatus
SelfSubjectReview|1 metadata ObjectMeta|2 status SelfSubjectReviewStatus
TokenRequestSpec|1 audiences list string +required|4 expirationSeconds int64|3 boundObjectRef BoundObjectReference
TokenRequestStatus|1 token string +required|2 expirationTimestamp Time +required
TokenReviewSpec|1 token string|2 audiences list string
TokenReviewStatus|1 authenticated bool|2 user UserInfo|4 audiences list string|3 error string
SelfSubjectReviewStatus|1 userInfo UserInfo
BoundObjectReference|1 kind string|2 apiVersion string|3 name string|4 uid string
UserInfo|1 username string|2 uid string|3 groups list string|4 extra map ExtraValue
SelfSubjectAccessReview|1 metadata ObjectMeta|2 spec SelfSubjectAccessReviewSpec +required|3 status SubjectAccessReviewStatus
SelfSubjectRulesReview|1 metadata ObjectMeta|2 spec SelfSubjectRulesReviewSpec +required|3 status SubjectRulesReviewStatus
SubjectAccessReview|1 metadata ObjectMeta|2 spec SubjectAccessReviewSpec +required|3 status SubjectAccessReviewStatus
LocalSubjectAccessReview|1 metadata ObjectMeta|2 spec SubjectAccessReviewSpec +required|3 status SubjectAccessReviewStatus
SelfSubjectAccessReviewSpec|1 resourceAttributes ResourceAttributes|2 nonResourceAttributes NonResourceAttributes
SubjectAccessReviewStatus|1 allowed bool +required|4 denied bool|2 reason string|3 evaluationError string
SelfSubjectRulesReviewSpec|1 namespace string
SubjectRulesReviewStatus|1 resourceRules list ResourceRule +required|2 nonResourceRules list NonResourceRule +required|3 incomplete bool +required|4 evaluationError string
SubjectAccessReviewSpec|1 resourceAttributes ResourceAttributes|2 nonResourceAttributes NonResourceAttributes|3 user string|4 groups list string|5 extra map ExtraValue|6 uid string
ResourceAttributes|1 namespace string|2 verb string|3 group string|4 version string|5 resource string|6 subresource string|7 name string|8 fieldSelector FieldSelectorAttributes|9 labelSelector LabelSelectorAttributes
NonResourceAttributes|1 path string|2 verb string
ResourceRule|1 verbs list string +required|2 apiGroups list string|3 resources list string|4 resourceNames list string
NonResourceRule|1 verbs list string +required|2 nonResourceURLs list string
FieldSelectorAttributes|1 rawSelector string|2 requirements list FieldSelectorRequirement
LabelSelectorAttributes|1 rawSelector string|2 requirements list LabelSelectorRequirement
CertificateSigningRequest|1 metadata ObjectMeta|2 spec CertificateSigningRequestSpec +required|3 status CertificateSigningRequestStatus
CertificateSigningRequestList|1 metadata ListMeta|2 items list CertificateSigningRequest +required
CertificateSigningRequestSpec|1 request bytes +required|7 signerName string +required|8 expirationSeconds int32|5 usages list string|2 username string|3 uid string|4 groups list string|6 extra map ExtraValue
CertificateSigningRequestStatus|1 conditions list CertificateSigningRequestCondition|2 certificate bytes
CertificateSigningRequestCondition|1 type string +required|6 status string +required|2 reason string|3 message string|4 lastUpdateTime Time|5 lastTransitionTime Time
FieldSelectorRequirement|1 key string +required|2 operator string +required|3 values list string
Endpoints|1 metadata ObjectMeta|2 subsets list EndpointSubset
EndpointsList|1 metadata ListMeta|2 items list Endpoints +required
ResourceQuota|1 metadata ObjectMeta|2 spec ResourceQuotaSpec|3 status ResourceQuotaStatus
ResourceQuotaList|1 metadata ListMeta|2 items list ResourceQuota +required
LimitRange|1 metadata ObjectMeta|2 spec LimitRangeSpec
LimitRangeList|1 metadata ListMeta|2 items list LimitRange +required
EndpointSubset|1 addresses list EndpointAddress|2 notReadyAddresses list EndpointAddress|3 ports list EndpointPort
ResourceQuotaSpec|1 hard map Quantity|2 scopes list string|3 scopeSelector ScopeSelector
ResourceQuotaStatus|1 hard map Quantity|2 used map Quantity
LimitRangeSpec|1 limits list LimitRangeItem +required
EndpointAddress|1 ip string +required|3 hostname string|4 nodeName string|2 targetRef ObjectReference
EndpointPort|1 name string|2 port int32 +required|3 protocol string|4 appProtocol string
ScopeSelector|1 matchExpressions list ScopedResourceSelectorRequirement
LimitRangeItem|1 type string +required|2 max map Quantity|3 min map Quantity|4 default map Quantity|5 defaultRequest map Quantity|6 maxLimitRequestRatio map Quantity
ScopedResourceSelectorRequirement|1 scopeName string +required|2 operator string +required|3 values list string
Lease|1 metadata ObjectMeta|2 spec LeaseSpec
LeaseList|1 metadata ListMeta|2 items list Lease +required
LeaseSpec|1 holderIdentity string|2 leaseDurationSeconds int32|3 acquireTime MicroTime|4 renewTime MicroTime|5 leaseTransitions int32|6 strategy string|7 preferredHolder string
Eviction|1 metadata ObjectMeta|2 deleteOptions DeleteOptions
PodDisruptionBudget|1 metadata ObjectMeta|2 spec PodDisruptionBudgetSpec|3 status PodDisruptionBudgetStatus
PodDisruptionBudgetList|1 metadata ListMeta|2 items list PodDisruptionBudget +required
PodDisruptionBudgetSpec|1 minAvailable IntOrString|2 selector LabelSelector|3 maxUnavailable IntOrString|4 unhealthyPodEvictionPolicy string
PodDisruptionBudgetStatus|1 observedGeneration int64|2 disruptedPods map Time|3 disruptionsAllowed int32 +required|4 currentHealthy int32 +required|5 desiredHealthy int32 +required|6 expectedPods int32 +required|7 conditions list Condition key=type
RuntimeClass|1 metadata ObjectMeta|2 handler string +required|3 overhead RuntimeClassOverhead|4 scheduling RuntimeClassScheduling
RuntimeClassList|1 metadata ListMeta|2 items list RuntimeClass +required
RuntimeClassOverhead|1 podFixed map Quantity
RuntimeClassScheduling|1 nodeSelector map string|2 tolerations list Toleration
PriorityClass|1 metadata ObjectMeta|2 value int32 +required|3 globalDefault bool|4 description string|5 preemptionPolicy string
PriorityClassList|1 metadata ListMeta|2 items list PriorityClass +required
EventsEvent|1 metadata ObjectMeta +required|2 eventTime MicroTime|3 series EventsEventSeries|4 reportingController string|5 reportingInstance string|6 action string|7 reason string|8 regarding ObjectReference|9 related ObjectReference|10 note string|11 type string|12 deprecatedSource EventSource|13 deprecatedFirstTimestamp Time|14 deprecatedLastTimestamp Time|15 deprecatedCount int32
EventsEventList|1 metadata ListMeta|2 items list EventsEvent +required
EventsEventSeries|1 count int32 +required|2 lastObservedTime MicroTime
Container|1 name string +required|2 image string|3 command list string|4 args list string|5 workingDir string|6 ports list ContainerPort key=containerPort|19 envFrom list EnvFromSource|7 env list EnvVar key=name|8 resources ResourceRequirements|23 resizePolicy list ContainerResizePolicy|24 restartPolicy string|25 restartPolicyRules list ContainerRestartRule|9 volumeMounts list VolumeMount key=mountPath|21 volumeDevices list VolumeDevice key=devicePath|10 livenessProbe Probe|11 readinessProbe Probe|22 startupProbe Probe|12 lifecycle Lifecycle|13 terminationMessagePath string|20 terminationMessagePolicy string|14 imagePullPolicy string|15 securityContext SecurityContext|16 stdin bool|17 stdinOnce bool|18 tty bool
EphemeralContainer|1 ephemeralContainerCommon inline EphemeralContainerCommon|2 targetContainerName string
LocalObjectReference|1 name string
ResourceRequirements|1 limits map Quantity|2 requests map Quantity|3 claims list ResourceClaim
ContainerStatus|1 name string +required|2 state ContainerState|3 lastState ContainerState|4 ready bool +required|5 restartCount int32 +required|6 image string +required|7 imageID string +required|8 containerID string|9 started bool|10 allocatedResources map Quantity|11 resources ResourceRequirements|12 volumeMounts list VolumeMountStatus key=mountPath|13 user ContainerUser|14 allocatedResourcesStatus list ResourceStatus key=name|15 stopSignal string
NodeAllocatableResourceClaimStatus|1 resourceClaimName string +required|2 containers list string|3 resources map Quantity +required
ContainerPort|1 name string|2 hostPort int32|3 containerPort int32 +required|4 protocol string|5 hostIP string
EnvFromSource|1 prefix string|2 configMapRef ConfigMapEnvSource|3 secretRef SecretEnvSource
EnvVar|1 name string +required|2 value string|3 valueFrom EnvVarSource
ContainerResizePolicy|1 resourceName string +required|2 restartPolicy string +required
ContainerRestartRule|1 action string|2 exitCodes ContainerRestartRuleOnExitCodes
Probe|1 handler inline ProbeHandler|2 initialDelaySeconds int32|3 timeoutSeconds int32|4 periodSeconds int32|5 successThreshold int32|6 failureThreshold int32|7 terminationGracePeriodSeconds int64
Lifecycle|1 postStart LifecycleHandler|2 preStop LifecycleHandler|3 stopSignal string
SecurityContext|1 capabilities Capabilities|2 privileged bool|3 seLinuxOptions SELinuxOptions|10 windowsOptions WindowsSecurityContextOptions|4 runAsUser int64|8 runAsGroup int64|5 runAsNonRoot bool|6 readOnlyRootFilesystem bool|7 allowPrivilegeEscalation bool|9 procMount string|11 seccompProfile SeccompProfile|12 appArmorProfile AppArmorProfile
EphemeralContainerCommon|1 name string +required|2 image string|3 command list string|4 args list string|5 workingDir string|6 ports list ContainerPort key=containerPort|19 envFrom list EnvFromSource|7 env list EnvVar key=name|8 resources ResourceRequirements|23 resizePolicy list ContainerResizePolicy|24 restartPolicy string|25 restartPolicyRules list ContainerRestartRule|9 volumeMounts list VolumeMount key=mountPath|21 volumeDevices list VolumeDevice key=devicePath|10 livenessProbe Probe|11 readinessProbe Probe|22 startupProbe Probe|12 lifecycle Lifecycle|13 terminationMessagePath string|20 terminationMessagePolicy string|14 imagePullPolicy string|15 securityContext SecurityContext|16 stdin bool|17 stdinOnce bool|18 tty bool
SELinuxOptions|1 user string|2 role string|3 type string|4 level string
WindowsSecurityContextOptions|1 gmsaCredentialSpecName string|2 gmsaCredentialSpec string|3 runAsUserName string|4 hostProcess bool
SeccompProfile|1 type string +required|2 localhostProfile string
AppArmorProfile|1 type string +required|2 localhostProfile string
ResourceClaim|1 name string +required|2 request string
ContainerState|1 waiting ContainerStateWaiting|2 running ContainerStateRunning|3 terminated ContainerStateTerminated
ContainerUser|1 linux LinuxContainerUser
ResourceStatus|1 name string +required|2 resources list ResourceHealth
ContainerExtendedResourceRequest|1 containerName string +required|2 resourceName string +required|3 requestName string +required
ConfigMapEnvSource|1 localObjectReference inline LocalObjectReference|2 optional bool
SecretEnvSource|1 localObjectReference inline LocalObjectReference|2 optional bool
EnvVarSource|1 fieldRef ObjectFieldSelector|2 resourceFieldRef ResourceFieldSelector|3 configMapKeyRef ConfigMapKeySelector|4 secretKeyRef SecretKeySelector|5 fileKeyRef FileKeySelector
ContainerRestartRuleOnExitCodes|1 operator string|2 values list int32
ProbeHandler|1 exec ExecAction|2 httpGet HTTPGetAction|3 tcpSocket TCPSocketAction|4 grpc GRPCAction
LifecycleHandler|1 exec ExecAction|2 httpGet HTTPGetAction|3 tcpSocket TCPSocketAction|4 sleep SleepAction
Capabilities|1 add list string|2 drop list string
ContainerStateWaiting|1 reason string|2 message string
ContainerStateRunning|1 startedAt Time
ContainerStateTerminated|1 exitCode int32 +required|2 signal int32|3 reason string|4 message string|5 startedAt Time|6 finishedAt Time|7 containerID string
LinuxContainerUser|1 uid int64 +required|2 gid int64 +required|3 supplementalGroups list int64
ResourceHealth|1 resourceID string +required|2 health string|6 message string
ObjectFieldSelector|1 apiVersion string|2 fieldPath string +required
ResourceFieldSelector|1 containerName string|2 resource string +required|3 divisor Quantity
ConfigMapKeySelector|1 localObjectReference inline LocalObjectReference|2 key string +required|3 optional bool
SecretKeySelector|1 localObjectReference inline LocalObjectReference|2 key string +required|3 optional bool
FileKeySelector|1 volumeName string +required|2 path string +required|3 key string +required|4 optional bool
ExecAction|1 command list string
HTTPGetAction|1 path string|2 port IntOrString +required|3 host string|4 scheme string|5 httpHeaders list HTTPHeader
TCPSocketAction|1 port IntOrString +required|2 host string
GRPCAction|1 port int32 +required|2 service string +required
SleepAction|1 seconds int64 +required
HTTPHeader|1 name string +required|2 value string +required
ObjectMeta|1 name string|2 generateName string|3 namespace string|4 selfLink string|5 uid string|6 resourceVersion string|7 generation int64|8 creationTimestamp Time|9 deletionTimestamp Time|10 deletionGracePeriodSeconds int64|11 labels map string|12 annotations map string|13 ownerReferences list OwnerReference key=uid|14 finalizers list string merge|17 managedFields list ManagedFieldsEntry
ListMeta|1 selfLink string|2 resourceVersion string|3 continue string|4 remainingItemCount int64|5 shardInfo ShardInfo
LabelSelector|1 matchLabels map string|2 matchExpressions list LabelSelectorRequirement
Status|1 metadata ListMeta|2 status string|3 message string|4 reason string|5 details StatusDetails|6 code int32
Condition|1 type string +required|2 status string +required|3 observedGeneration int64|4 lastTransitionTime Time +required|5 reason string +required|6 message string +required
DeleteOptions|1 gracePeriodSeconds int64|2 preconditions Preconditions|3 orphanDependents bool|4 propagationPolicy string|5 dryRun list string|6 ignoreStoreReadErrorWithClusterBreakingPotential bool
OwnerReference|5 apiVersion string +required|1 kind string +required|3 name string +required|4 uid string +required|6 controller bool|7 blockOwnerDeletion bool
ManagedFieldsEntry|1 manager string|2 operation string|3 apiVersion string|4 time Time|6 fieldsType string|7 fieldsV1 FieldsV1|8 subresource string
ShardInfo|1 selector string +required
LabelSelectorRequirement|1 key string +required|2 operator string +required|3 values list string
StatusDetails|1 name string|2 group string|3 kind string|6 uid string|4 causes list StatusCause|5 retryAfterSeconds int32
Preconditions|1 uid string|2 resourceVersion string
StatusCause|1 reason string|2 message string|3 field string
Node|1 metadata ObjectMeta|2 spec NodeSpec|3 status NodeStatus
NodeList|1 metadata ListMeta|2 items list Node +required
NodeSpec|1 podCIDR string|7 podCIDRs list string merge|3 providerID string|4 unschedulable bool|5 taints list Taint|6 configSource NodeConfigSource|2 externalID string
NodeStatus|1 capacity map Quantity|2 allocatable map Quantity|3 phase string|4 conditions list NodeCondition key=type|5 addresses list NodeAddress key=type|6 daemonEndpoints NodeDaemonEndpoints|7 nodeInfo NodeSystemInfo|8 images list ContainerImage|9 volumesInUse list string|10 volumesAttached list AttachedVolume|11 config NodeConfigStatus|12 runtimeHandlers list NodeRuntimeHandler|13 features NodeFeatures|14 declaredFeatures list string
Taint|1 key string +required|2 value string|3 effect string +required|4 timeAdded Time
NodeConfigSource|2 configMap ConfigMapNodeConfigSource
NodeCondition|1 type string +required|2 status string +required|3 lastHeartbeatTime Time|4 lastTransitionTime Time|5 reason string|6 message string
NodeAddress|1 type string +required|2 address string +required
NodeDaemonEndpoints|1 kubeletEndpoint DaemonEndpoint
NodeSystemInfo|1 machineID string +required|2 systemUUID string +required|3 bootID string +required|4 kernelVersion string +required|5 osImage string +required|6 containerRuntimeVersion string +required|7 kubeletVersion string +required|8 kubeProxyVersion string +required|9 operatingSystem string +required|10 architecture string +required|11 swap NodeSwapStatus
ContainerImage|1 names list string +required|2 sizeBytes int64
AttachedVolume|1 name string +required|2 devicePath string +required
NodeConfigStatus|1 assigned NodeConfigSource|2 active NodeConfigSource|3 lastKnownGood NodeConfigSource|4 error string
NodeRuntimeHandler|1 name string +required|2 features NodeRuntimeHandlerFeatures
NodeFeatures|1 supplementalGroupsPolicy bool
ConfigMapNodeConfigSource|1 namespace string +required|2 name string +required|3 uid string|4 resourceVersion string|5 kubeletConfigKey string +required
DaemonEndpoint|1 Port int32 +required
NodeSwapStatus|1 capacity int64
NodeRuntimeHandlerFeatures|1 recursiveReadOnlyMounts bool|2 userNamespaces bool
Event|1 metadata ObjectMeta +required|2 involvedObject ObjectReference +required|3 reason string|4 message string|5 source EventSource|6 firstTimestamp Time|7 lastTimestamp Time|8 count int32|9 type string|10 eventTime MicroTime|11 series EventSeries|12 action string|13 related ObjectReference|14 reportingComponent string +required|15 reportingInstance string +required
EventList|1 metadata ListMeta|2 items list Event +required
Secret|1 metadata ObjectMeta|5 immutable bool|2 data map bytes|4 stringData map string|3 type string
SecretList|1 metadata ListMeta|2 items list Secret +required
ConfigMap|1 metadata ObjectMeta|4 immutable bool|2 data map string|3 binaryData map bytes
ConfigMapList|1 metadata ListMeta|2 items list ConfigMap +required
Service|1 metadata ObjectMeta|2 spec ServiceSpec|3 status ServiceStatus
ServiceList|1 metadata ListMeta|2 items list Service +required
ServiceAccount|1 metadata ObjectMeta|2 secrets list ObjectReference key=name|3 imagePullSecrets list LocalObjectReference|4 automountServiceAccountToken bool
ServiceAccountList|1 metadata ListMeta|2 items list ServiceAccount +required
PersistentVolume|1 metadata ObjectMeta|2 spec PersistentVolumeSpec|3 status PersistentVolumeStatus
PersistentVolumeList|1 metadata ListMeta|2 items list PersistentVolume +required
PersistentVolumeClaim|1 metadata ObjectMeta|2 spec PersistentVolumeClaimSpec|3 status PersistentVolumeClaimStatus
PersistentVolumeClaimList|1 metadata ListMeta|2 items list PersistentVolumeClaim +required
Namespace|1 metadata ObjectMeta|2 spec NamespaceSpec|3 status NamespaceStatus
NamespaceList|1 metadata ListMeta|2 items list Namespace +required
Binding|1 metadata ObjectMeta|2 target ObjectReference +required
ObjectReference|1 kind string|2 namespace string|3 name string|4 uid string|5 apiVersion string|6 resourceVersion string|7 fieldPath string
EventSource|1 component string|2 host string
EventSeries|1 count int32|2 lastObservedTime MicroTime
ServiceSpec|1 ports list ServicePort key=port|2 selector map string|3 clusterIP string|18 clusterIPs list string|4 type string|5 externalIPs list string|7 sessionAffinity string|8 loadBalancerIP string|9 loadBalancerSourceRanges list string|10 externalName string|11 externalTrafficPolicy string|12 healthCheckNodePort int32|13 publishNotReadyAddresses bool|14 sessionAffinityConfig SessionAffinityConfig|19 ipFamilies list string|17 ipFamilyPolicy string|20 allocateLoadBalancerNodePorts bool|21 loadBalancerClass string|22 internalTrafficPolicy string|23 trafficDistribution string
ServiceStatus|1 loadBalancer LoadBalancerStatus|2 conditions list Condition key=type
PersistentVolumeSpec|1 capacity map Quantity|2 persistentVolumeSource inline PersistentVolumeSource|3 accessModes list string|4 claimRef ObjectReference|5 persistentVolumeReclaimPolicy string|6 storageClassName string|7 mountOptions list string|8 volumeMode string|9 nodeAffinity VolumeNodeAffinity|10 volumeAttributesClassName string
PersistentVolumeStatus|1 phase string|2 message string|3 reason string|4 lastPhaseTransitionTime Time
PersistentVolumeClaimStatus|1 phase string|2 accessModes list string|3 capacity map Quantity|4 conditions list PersistentVolumeClaimCondition key=type|5 allocatedResources map Quantity|7 allocatedResourceStatuses map string|8 currentVolumeAttributesClassName string|9 modifyVolumeStatus ModifyVolumeStatus
NamespaceSpec|1 finalizers list string
NamespaceStatus|1 phase string|2 conditions list NamespaceCondition key=type
ServicePort|1 name string|2 protocol string|6 appProtocol string|3 port int32 +required|4 targetPort IntOrString|5 nodePort int32
SessionAffinityConfig|1 clientIP ClientIPConfig
LoadBalancerStatus|1 ingress list LoadBalancerIngress
PersistentVolumeSource|1 gcePersistentDisk GCEPersistentDiskVolumeSource|2 awsElasticBlockStore AWSElasticBlockStoreVolumeSource|3 hostPath HostPathVolumeSource|4 glusterfs GlusterfsPersistentVolumeSource|5 nfs NFSVolumeSource|6 rbd RBDPersistentVolumeSource|7 iscsi ISCSIPersistentVolumeSource|8 cinder CinderPersistentVolumeSource|9 cephfs CephFSPersistentVolumeSource|10 fc FCVolumeSource|11 flocker FlockerVolumeSource|12 flexVolume FlexPersistentVolumeSource|13 azureFile AzureFilePersistentVolumeSource|14 vsphereVolume VsphereVirtualDiskVolumeSource|15 quobyte QuobyteVolumeSource|16 azureDisk AzureDiskVolumeSource|17 photonPersistentDisk PhotonPersistentDiskVolumeSource|18 portworxVolume PortworxVolumeSource|19 scaleIO ScaleIOPersistentVolumeSource|20 local LocalVolumeSource|21 storageos StorageOSPersistentVolumeSource|22 csi CSIPersistentVolumeSource
VolumeNodeAffinity|1 required NodeSelector
PersistentVolumeClaimCondition|1 type string +required|2 status string +required|3 lastProbeTime Time|4 lastTransitionTime Time|5 reason string|6 message string
ModifyVolumeStatus|1 targetVolumeAttributesClassName string|2 status string +required
NamespaceCondition|1 type string +required|2 status string +required|4 lastTransitionTime Time|5 reason string|6 message string
ClientIPConfig|1 timeoutSeconds int32
LoadBalancerIngress|1 ip string|2 hostname string|3 ipMode string|4 ports list PortStatus
GlusterfsPersistentVolumeSource|1 endpoints string +required|2 path string +required|3 readOnly bool|4 endpointsNamespace string
RBDPersistentVolumeSource|1 monitors list string +required|2 image string +required|3 fsType string|4 pool string|5 user string|6 keyring string|7 secretRef SecretReference|8 readOnly bool
ISCSIPersistentVolumeSource|1 targetPortal string +required|2 iqn string +required|3 lun int32 +required|4 iscsiInterface string|5 fsType string|6 readOnly bool|7 portals list string|8 chapAuthDiscovery bool|11 chapAuthSession bool|10 secretRef SecretReference|12 initiatorName string
CinderPersistentVolumeSource|1 volumeID string +required|2 fsType string|3 readOnly bool|4 secretRef SecretReference
CephFSPersistentVolumeSource|1 monitors list string +required|2 path string|3 user string|4 secretFile string|5 secretRef SecretReference|6 readOnly bool
FlexPersistentVolumeSource|1 driver string +required|2 fsType string|3 secretRef SecretReference|4 readOnly bool|5 options map string
AzureFilePersistentVolumeSource|1 secretName string +required|2 shareName string +required|3 readOnly bool|4 secretNamespace string +required
ScaleIOPersistentVolumeSource|1 gateway string +required|2 system string +required|3 secretRef SecretReference +required|4 sslEnabled bool|5 protectionDomain string|6 storagePool string|7 storageMode string|8 volumeName string|9 fsType string|10 readOnly bool
LocalVolumeSource|1 path string +required|2 fsType string
StorageOSPersistentVolumeSource|1 volumeName string|2 volumeNamespace string|3 fsType string|4 readOnly bool|5 secretRef ObjectReference
CSIPersistentVolumeSource|1 driver string +required|2 volumeHandle string +required|3 readOnly bool|4 fsType string|5 volumeAttributes map string|6 controllerPublishSecretRef SecretReference|7 nodeStageSecretRef SecretReference|8 nodePublishSecretRef SecretReference|9 controllerExpandSecretRef SecretReference|10 nodeExpandSecretRef SecretReference
PortStatus|1 port int32 +required|2 protocol string +required|3 error string
SecretReference|1 name string|2 namespace string
Pod|1 metadata ObjectMeta|2 spec PodSpec|3 status PodStatus
PodList|1 metadata ListMeta|2 items list Pod +required
PodSpec|1 volumes list Volume key=name retain|20 initContainers list Container key=name|2 containers list Container +required key=name|34 ephemeralContainers list EphemeralContainer key=name|3 restartPolicy string|4 terminationGracePeriodSeconds int64|5 activeDeadlineSeconds int64|6 dnsPolicy string|7 nodeSelector map string|8 serviceAccountName string|9 serviceAccount string|21 automountServiceAccountToken bool|10 nodeName string|11 hostNetwork bool|12 hostPID bool|13 hostIPC bool|27 shareProcessNamespace bool|14 securityContext PodSecurityContext|15 imagePullSecrets list LocalObjectReference key=name|16 hostname string|17 subdomain string|18 affinity Affinity|19 schedulerName string|22 tolerations list Toleration|23 hostAliases list HostAlias key=ip|24 priorityClassName string|25 priority int32|26 dnsConfig PodDNSConfig|28 readinessGates list PodReadinessGate|29 runtimeClassName string|30 enableServiceLinks bool|31 preemptionPolicy string|32 overhead map Quantity|33 topologySpreadConstraints list TopologySpreadConstraint key=topologyKey|35 setHostnameAsFQDN bool|36 os PodOS|37 hostUsers bool|38 schedulingGates list PodSchedulingGate key=name|39 resourceClaims list PodResourceClaim key=name retain|40 resources ResourceRequirements|41 hostnameOverride string|43 schedulingGroup PodSchedulingGroup
PodStatus|17 observedGeneration int64|1 phase string|2 conditions list PodCondition key=type|3 message string|4 reason string|11 nominatedNodeName string|5 hostIP string|16 hostIPs list HostIP key=ip|6 podIP string|12 podIPs list PodIP key=ip|7 startTime Time|10 initContainerStatuses list ContainerStatus|8 containerStatuses list ContainerStatus|9 qosClass string|13 ephemeralContainerStatuses list ContainerStatus|14 resize string|15 resourceClaimStatuses list PodResourceClaimStatus key=name retain|18 extendedResourceClaimStatus PodExtendedResourceClaimStatus|19 allocatedResources map Quantity|20 resources ResourceRequirements|21 nodeAllocatableResourceClaimStatuses list NodeAllocatableResourceClaimStatus
PodSecurityContext|1 seLinuxOptions SELinuxOptions|8 windowsOptions WindowsSecurityContextOptions|2 runAsUser int64|6 runAsGroup int64|3 runAsNonRoot bool|4 supplementalGroups list int64|12 supplementalGroupsPolicy string|5 fsGroup int64|7 sysctls list Sysctl|9 fsGroupChangePolicy string|10 seccompProfile SeccompProfile|11 appArmorProfile AppArmorProfile|13 seLinuxChangePolicy string
HostAlias|1 ip string +required|2 hostnames list string
PodDNSConfig|1 nameservers list string|2 searches list string|3 options list PodDNSConfigOption
PodReadinessGate|1 conditionType string +required
PodOS|1 name string +required
PodSchedulingGate|1 name string +required
PodResourceClaim|1 name string +required|3 resourceClaimName string|4 resourceClaimTemplateName string
PodSchedulingGroup|1 podGroupName string
PodCondition|1 type string +required|7 observedGeneration int64|2 status string +required|3 lastProbeTime Time|4 lastTransitionTime Time|5 reason string|6 message string
HostIP|1 ip string +required
PodIP|1 ip string +required
PodResourceClaimStatus|1 name string +required|2 resourceClaimName string
PodExtendedResourceClaimStatus|1 requestMappings list ContainerExtendedResourceRequest +required|2 resourceClaimName string +required
Sysctl|1 name string +required|2 value string +required
PodDNSConfigOption|1 name string|2 value string
Affinity|1 nodeAffinity NodeAffinity|2 podAffinity PodAffinity|3 podAntiAffinity PodAntiAffinity
Toleration|1 key string|2 operator string|3 value string|4 effect string|5 tolerationSeconds int64
TopologySpreadConstraint|1 maxSkew int32 +required|2 topologyKey string +required|3 whenUnsatisfiable string +required|4 labelSelector LabelSelector|5 minDomains int32|6 nodeAffinityPolicy string|7 nodeTaintsPolicy string|8 matchLabelKeys list string
NodeAffinity|1 requiredDuringSchedulingIgnoredDuringExecution NodeSelector|2 preferredDuringSchedulingIgnoredDuringExecution list PreferredSchedulingTerm
PodAffinity|1 requiredDuringSchedulingIgnoredDuringExecution list PodAffinityTerm|2 preferredDuringSchedulingIgnoredDuringExecution list WeightedPodAffinityTerm
PodAntiAffinity|1 requiredDuringSchedulingIgnoredDuringExecution list PodAffinityTerm|2 preferredDuringSchedulingIgnoredDuringExecution list WeightedPodAffinityTerm
NodeSelector|1 nodeSelectorTerms list NodeSelectorTerm +required
PreferredSchedulingTerm|1 weight int32 +required|2 preference NodeSelectorTerm +required
PodAffinityTerm|1 labelSelector LabelSelector|2 namespaces list string|3 topologyKey string +required|4 namespaceSelector LabelSelector|5 matchLabelKeys list string|6 mismatchLabelKeys list string
WeightedPodAffinityTerm|1 weight int32 +required|2 podAffinityTerm PodAffinityTerm +required
NodeSelectorTerm|1 matchExpressions list NodeSelectorRequirement|2 matchFields list NodeSelectorRequirement
NodeSelectorRequirement|1 key string +required|2 operator string +required|3 values list string
CSINode|1 metadata ObjectMeta|2 spec CSINodeSpec +required
CSINodeList|1 metadata ListMeta|2 items list CSINode +required
CSIDriver|1 metadata ObjectMeta|2 spec CSIDriverSpec +required
CSIDriverList|1 metadata ListMeta|2 items list CSIDriver +required
StorageClass|1 metadata ObjectMeta|2 provisioner string +required|3 parameters map string|4 reclaimPolicy string|5 mountOptions list string|6 allowVolumeExpansion bool|7 volumeBindingMode string|8 allowedTopologies list TopologySelectorTerm
StorageClassList|1 metadata ListMeta|2 items list StorageClass +required
VolumeAttachment|1 metadata ObjectMeta|2 spec VolumeAttachmentSpec +required|3 status VolumeAttachmentStatus
VolumeAttachmentList|1 metadata ListMeta|2 items list VolumeAttachment +required
CSINodeSpec|1 drivers list CSINodeDriver +required key=name
CSIDriverSpec|1 attachRequired bool|2 podInfoOnMount bool|3 volumeLifecycleModes list string|4 storageCapacity bool|5 fsGroupPolicy string|6 tokenRequests list CSIDriverTokenRequest|7 requiresRepublish bool|8 seLinuxMount bool|9 nodeAllocatableUpdatePeriodSeconds int64|10 serviceAccountTokenInSecrets bool|11 preventPodSchedulingIfMissing bool
VolumeAttachmentSpec|1 attacher string +required|2 source VolumeAttachmentSource +required|3 nodeName string +required
VolumeAttachmentStatus|1 attached bool +required|2 attachmentMetadata map string|3 attachError VolumeError|4 detachError VolumeError
CSINodeDriver|1 name string +required|2 nodeID string +required|3 topologyKeys list string +required|4 allocatable VolumeNodeResources
CSIDriverTokenRequest|1 audience string +required|2 expirationSeconds int64
VolumeAttachmentSource|1 persistentVolumeName string|2 inlineVolumeSpec PersistentVolumeSpec
VolumeError|1 time Time|2 message string|3 errorCode int32
VolumeNodeResources|1 count int32
TopologySelectorTerm|1 matchLabelExpressions list TopologySelectorLabelRequirement
TopologySelectorLabelRequirement|1 key string +required|2 values list string +required
Volume|1 name string +required|2 volumeSource inline VolumeSource
VolumeSource|1 hostPath HostPathVolumeSource|2 emptyDir EmptyDirVolumeSource|3 gcePersistentDisk GCEPersistentDiskVolumeSource|4 awsElasticBlockStore AWSElasticBlockStoreVolumeSource|5 gitRepo GitRepoVolumeSource|6 secret SecretVolumeSource|7 nfs NFSVolumeSource|8 iscsi ISCSIVolumeSource|9 glusterfs GlusterfsVolumeSource|10 persistentVolumeClaim PersistentVolumeClaimVolumeSource|11 rbd RBDVolumeSource|12 flexVolume FlexVolumeSource|13 cinder CinderVolumeSource|14 cephfs CephFSVolumeSource|15 flocker FlockerVolumeSource|16 downwardAPI DownwardAPIVolumeSource|17 fc FCVolumeSource|18 azureFile AzureFileVolumeSource|19 configMap ConfigMapVolumeSource|20 vsphereVolume VsphereVirtualDiskVolumeSource|21 quobyte QuobyteVolumeSource|22 azureDisk AzureDiskVolumeSource|23 photonPersistentDisk PhotonPersistentDiskVolumeSource|26 projected ProjectedVolumeSource|24 portworxVolume PortworxVolumeSource|25 scaleIO ScaleIOVolumeSource|27 storageos StorageOSVolumeSource|28 csi CSIVolumeSource|29 ephemeral EphemeralVolumeSource|30 image ImageVolumeSource
VolumeMount|1 name string +required|2 readOnly bool|7 recursiveReadOnly string|3 mountPath string +required|4 subPath string|5 mountPropagation string|6 subPathExpr string
VolumeDevice|1 name string +required|2 devicePath string +required
VolumeMountStatus|1 name string +required|2 mountPath string +required|3 readOnly bool|4 recursiveReadOnly string|5 volumeStatus VolumeStatus
HostPathVolumeSource|1 path string +required|2 type string
EmptyDirVolumeSource|1 medium string|2 sizeLimit Quantity
GCEPersistentDiskVolumeSource|1 pdName string +required|2 fsType string|3 partition int32|4 readOnly bool
AWSElasticBlockStoreVolumeSource|1 volumeID string +required|2 fsType string|3 partition int32|4 readOnly bool
GitRepoVolumeSource|1 repository string +required|2 revision string|3 directory string
SecretVolumeSource|1 secretName string|2 items list KeyToPath|3 defaultMode int32|4 optional bool
NFSVolumeSource|1 server string +required|2 path string +required|3 readOnly bool
ISCSIVolumeSource|1 targetPortal string +required|2 iqn string +required|3 lun int32 +required|4 iscsiInterface string|5 fsType string|6 readOnly bool|7 portals list string|8 chapAuthDiscovery bool|11 chapAuthSession bool|10 secretRef LocalObjectReference|12 initiatorName string
GlusterfsVolumeSource|1 endpoints string +required|2 path string +required|3 readOnly bool
PersistentVolumeClaimVolumeSource|1 claimName string +required|2 readOnly bool
RBDVolumeSource|1 monitors list string +required|2 image string +required|3 fsType string|4 pool string|5 user string|6 keyring string|7 secretRef LocalObjectReference|8 readOnly bool
FlexVolumeSource|1 driver string +required|2 fsType string|3 secretRef LocalObjectReference|4 readOnly bool|5 options map string
CinderVolumeSource|1 volumeID string +required|2 fsType string|3 readOnly bool|4 secretRef LocalObjectReference
CephFSVolumeSource|1 monitors list string +required|2 path string|3 user string|4 secretFile string|5 secretRef LocalObjectReference|6 readOnly bool
FlockerVolumeSource|1 datasetName string|2 datasetUUID string
DownwardAPIVolumeSource|1 items list DownwardAPIVolumeFile|2 defaultMode int32
FCVolumeSource|1 targetWWNs list string|2 lun int32|3 fsType string|4 readOnly bool|5 wwids list string
AzureFileVolumeSource|1 secretName string +required|2 shareName string +required|3 readOnly bool
ConfigMapVolumeSource|1 localObjectReference inline LocalObjectReference|2 items list KeyToPath|3 defaultMode int32|4 optional bool
VsphereVirtualDiskVolumeSource|1 volumePath string +required|2 fsType string|3 storagePolicyName string|4 storagePolicyID string
QuobyteVolumeSource|1 registry string +required|2 volume string +required|3 readOnly bool|4 user string|5 group string|6 tenant string
AzureDiskVolumeSource|1 diskName string +required|2 diskURI string +required|3 cachingMode string|4 fsType string|5 readOnly bool|6 kind string
PhotonPersistentDiskVolumeSource|1 pdID string +required|2 fsType string
ProjectedVolumeSource|1 sources list VolumeProjection +required|2 defaultMode int32
PortworxVolumeSource|1 volumeID string +required|2 fsType string|3 readOnly bool
ScaleIOVolumeSource|1 gateway string +required|2 system string +required|3 secretRef LocalObjectReference +required|4 sslEnabled bool|5 protectionDomain string|6 storagePool string|7 storageMode string|8 volumeName string|9 fsType string|10 readOnly bool
StorageOSVolumeSource|1 volumeName string|2 volumeNamespace string|3 fsType string|4 readOnly bool|5 secretRef LocalObjectReference
CSIVolumeSource|1 driver string +required|2 readOnly bool|3 fsType string|4 volumeAttributes map string|5 nodePublishSecretRef LocalObjectReference
EphemeralVolumeSource|1 volumeClaimTemplate PersistentVolumeClaimTemplate
ImageVolumeSource|1 reference string|2 pullPolicy string
VolumeStatus|1 image ImageVolumeStatus
KeyToPath|1 key string +required|2 path string +required|3 mode int32
DownwardAPIVolumeFile|1 path string +required|2 fieldRef ObjectFieldSelector|3 resourceFieldRef ResourceFieldSelector|4 mode int32
VolumeProjection|1 secret SecretProjection|2 downwardAPI DownwardAPIProjection|3 configMap ConfigMapProjection|4 serviceAccountToken ServiceAccountTokenProjection|5 clusterTrustBundle ClusterTrustBundleProjection|6 podCertificate PodCertificateProjection
PersistentVolumeClaimTemplate|1 metadata ObjectMeta|2 spec PersistentVolumeClaimSpec +required
ImageVolumeStatus|1 imageRef string
SecretProjection|1 localObjectReference inline LocalObjectReference|2 items list KeyToPath|4 optional bool
DownwardAPIProjection|1 items list DownwardAPIVolumeFile
ConfigMapProjection|1 localObjectReference inline LocalObjectReference|2 items list KeyToPath|4 optional bool
ServiceAccountTokenProjection|1 audience string|2 expirationSeconds int64|3 path string +required
ClusterTrustBundleProjection|1 name string|2 signerName string|3 labelSelector LabelSelector|5 optional bool|4 path string +required
PodCertificateProjection|1 signerName string|2 keyType string|3 maxExpirationSeconds int32|4 credentialBundlePath string|5 keyPath string|6 certificateChainPath string|7 userAnnotations map string
PersistentVolumeClaimSpec|1 accessModes list string|4 selector LabelSelector|2 resources VolumeResourceRequirements|3 volumeName string|5 storageClassName string|6 volumeMode string|7 dataSource TypedLocalObjectReference|8 dataSourceRef TypedObjectReference|9 volumeAttributesClassName string
VolumeResourceRequirements|1 limits map Quantity|2 requests map Quantity
TypedLocalObjectReference|1 apiGroup string +required|2 kind string +required|3 name string +required
TypedObjectReference|1 apiGroup string +required|2 kind string +required|3 name string +required|4 namespace string
`;
