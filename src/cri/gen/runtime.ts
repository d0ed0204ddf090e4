// Made from the .proto files of this package by `npm run generate`; do not edit.
import { type ServerStream, type ServiceType, serviceType, type Unary } from '../../protocols/grpc/index.ts';
import { type MessageType, Schema } from '../../protocols/protobuf/index.ts';

export type MountPropagation = 'PROPAGATION_PRIVATE' | 'PROPAGATION_HOST_TO_CONTAINER' | 'PROPAGATION_BIDIRECTIONAL' | 'UNRECOGNIZED';
export type ContainerState = 'CONTAINER_CREATED' | 'CONTAINER_RUNNING' | 'CONTAINER_EXITED' | 'CONTAINER_UNKNOWN' | 'UNRECOGNIZED';
export type ContainerEventType = 'CONTAINER_CREATED_EVENT' | 'CONTAINER_STARTED_EVENT' | 'CONTAINER_STOPPED_EVENT' | 'CONTAINER_DELETED_EVENT' | 'UNRECOGNIZED';
export type MetricType = 'COUNTER' | 'GAUGE' | 'UNRECOGNIZED';
export type CgroupDriver = 'SYSTEMD' | 'CGROUPFS' | 'UNRECOGNIZED';
export type PodSandboxState = 'SANDBOX_READY' | 'SANDBOX_NOTREADY' | 'UNRECOGNIZED';
export type NamespaceMode = 'POD' | 'CONTAINER' | 'NODE' | 'TARGET' | 'UNRECOGNIZED';
export type SupplementalGroupsPolicy = 'Merge' | 'Strict' | 'UNRECOGNIZED';
export type SecurityProfileProfileType = 'RuntimeDefault' | 'Unconfined' | 'Localhost' | 'UNRECOGNIZED';
export type Protocol = 'TCP' | 'UDP' | 'SCTP' | 'UNRECOGNIZED';
export type Signal = 'RUNTIME_DEFAULT' | 'SIGABRT' | 'SIGALRM' | 'SIGBUS' | 'SIGCHLD' | 'SIGCLD' | 'SIGCONT' | 'SIGFPE' | 'SIGHUP' | 'SIGILL' | 'SIGINT' | 'SIGIO' | 'SIGIOT' | 'SIGKILL' | 'SIGPIPE' | 'SIGPOLL' | 'SIGPROF' | 'SIGPWR' | 'SIGQUIT' | 'SIGSEGV' | 'SIGSTKFLT' | 'SIGSTOP' | 'SIGSYS' | 'SIGTERM' | 'SIGTRAP' | 'SIGTSTP' | 'SIGTTIN' | 'SIGTTOU' | 'SIGURG' | 'SIGUSR1' | 'SIGUSR2' | 'SIGVTALRM' | 'SIGWINCH' | 'SIGXCPU' | 'SIGXFSZ' | 'SIGRTMIN' | 'SIGRTMINPLUS1' | 'SIGRTMINPLUS2' | 'SIGRTMINPLUS3' | 'SIGRTMINPLUS4' | 'SIGRTMINPLUS5' | 'SIGRTMINPLUS6' | 'SIGRTMINPLUS7' | 'SIGRTMINPLUS8' | 'SIGRTMINPLUS9' | 'SIGRTMINPLUS10' | 'SIGRTMINPLUS11' | 'SIGRTMINPLUS12' | 'SIGRTMINPLUS13' | 'SIGRTMINPLUS14' | 'SIGRTMINPLUS15' | 'SIGRTMAXMINUS14' | 'SIGRTMAXMINUS13' | 'SIGRTMAXMINUS12' | 'SIGRTMAXMINUS11' | 'SIGRTMAXMINUS10' | 'SIGRTMAXMINUS9' | 'SIGRTMAXMINUS8' | 'SIGRTMAXMINUS7' | 'SIGRTMAXMINUS6' | 'SIGRTMAXMINUS5' | 'SIGRTMAXMINUS4' | 'SIGRTMAXMINUS3' | 'SIGRTMAXMINUS2' | 'SIGRTMAXMINUS1' | 'SIGRTMAX' | 'UNRECOGNIZED';
export interface Mount {
  readonly containerPath: string;
  readonly hostPath: string;
  readonly readonly: boolean;
  readonly selinuxRelabel: boolean;
  readonly propagation: MountPropagation;
  readonly uidMappings: readonly IDMapping[];
  readonly gidMappings: readonly IDMapping[];
  readonly recursiveReadOnly: boolean;
  readonly image: ImageSpec | undefined;
  readonly imageSubPath: string;
}
export interface LinuxContainerConfig {
  readonly resources: LinuxContainerResources | undefined;
  readonly securityContext: LinuxContainerSecurityContext | undefined;
}
export interface Device {
  readonly containerPath: string;
  readonly hostPath: string;
  readonly permissions: string;
}
export interface CDIDevice {
  readonly name: string;
}
export interface ContainerConfig {
  readonly metadata: ContainerMetadata | undefined;
  readonly image: ImageSpec | undefined;
  readonly command: readonly string[];
  readonly args: readonly string[];
  readonly workingDir: string;
  readonly envs: readonly KeyValue[];
  readonly mounts: readonly Mount[];
  readonly devices: readonly Device[];
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly logPath: string;
  readonly stdin: boolean;
  readonly stdinOnce: boolean;
  readonly tty: boolean;
  readonly linux: LinuxContainerConfig | undefined;
  readonly windows: WindowsContainerConfig | undefined;
  readonly CDIDevices: readonly CDIDevice[];
  readonly stopSignal: Signal;
}
export interface CreateContainerRequest {
  readonly podSandboxId: string;
  readonly config: ContainerConfig | undefined;
  readonly sandboxConfig: PodSandboxConfig | undefined;
}
export interface CreateContainerResponse {
  readonly containerId: string;
}
export interface StartContainerRequest {
  readonly containerId: string;
}
export interface StartContainerResponse {
}
export interface StopContainerRequest {
  readonly containerId: string;
  readonly timeout: bigint;
}
export interface StopContainerResponse {
}
export interface RemoveContainerRequest {
  readonly containerId: string;
}
export interface RemoveContainerResponse {
}
export interface ContainerStateValue {
  readonly state: ContainerState;
}
export interface ContainerFilter {
  readonly id: string;
  readonly state: ContainerStateValue | undefined;
  readonly podSandboxId: string;
  readonly labelSelector: Readonly<Record<string, string>>;
}
export interface ListContainersRequest {
  readonly filter: ContainerFilter | undefined;
}
export interface Container {
  readonly id: string;
  readonly podSandboxId: string;
  readonly metadata: ContainerMetadata | undefined;
  readonly image: ImageSpec | undefined;
  readonly imageRef: string;
  readonly state: ContainerState;
  readonly createdAt: bigint;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly imageId: string;
}
export interface ListContainersResponse {
  readonly containers: readonly Container[];
}
export interface StreamContainersRequest {
  readonly filter: ContainerFilter | undefined;
}
export interface StreamContainersResponse {
  readonly containers: readonly Container[];
}
export interface ContainerStatusRequest {
  readonly containerId: string;
  readonly verbose: boolean;
}
export interface ContainerStatus {
  readonly id: string;
  readonly metadata: ContainerMetadata | undefined;
  readonly state: ContainerState;
  readonly createdAt: bigint;
  readonly startedAt: bigint;
  readonly finishedAt: bigint;
  readonly exitCode: number;
  readonly image: ImageSpec | undefined;
  readonly imageRef: string;
  readonly reason: string;
  readonly message: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly mounts: readonly Mount[];
  readonly logPath: string;
  readonly resources: ContainerResources | undefined;
  readonly imageId: string;
  readonly user: ContainerUser | undefined;
  readonly stopSignal: Signal;
}
export interface ContainerStatusResponse {
  readonly status: ContainerStatus | undefined;
  readonly info: Readonly<Record<string, string>>;
}
export interface ReopenContainerLogRequest {
  readonly containerId: string;
}
export interface ReopenContainerLogResponse {
}
export interface CheckpointContainerRequest {
  readonly containerId: string;
  readonly location: string;
  readonly timeout: bigint;
}
export interface CheckpointContainerResponse {
}
export interface GetEventsRequest {
}
export interface ContainerEventResponse {
  readonly containerId: string;
  readonly containerEventType: ContainerEventType;
  readonly createdAt: bigint;
  readonly podSandboxStatus: PodSandboxStatus | undefined;
  readonly containersStatuses: readonly ContainerStatus[];
}
export interface ImageFilter {
  readonly image: ImageSpec | undefined;
}
export interface ListImagesRequest {
  readonly filter: ImageFilter | undefined;
}
export interface Image {
  readonly id: string;
  readonly repoTags: readonly string[];
  readonly repoDigests: readonly string[];
  readonly size: bigint;
  readonly uid: Int64Value | undefined;
  readonly username: string;
  readonly spec: ImageSpec | undefined;
  readonly pinned: boolean;
}
export interface ListImagesResponse {
  readonly images: readonly Image[];
}
export interface StreamImagesRequest {
  readonly filter: ImageFilter | undefined;
}
export interface StreamImagesResponse {
  readonly images: readonly Image[];
}
export interface ImageStatusRequest {
  readonly image: ImageSpec | undefined;
  readonly verbose: boolean;
}
export interface ImageStatusResponse {
  readonly image: Image | undefined;
  readonly info: Readonly<Record<string, string>>;
}
export interface AuthConfig {
  readonly username: string;
  readonly password: string;
  readonly auth: string;
  readonly serverAddress: string;
  readonly identityToken: string;
  readonly registryToken: string;
}
export interface PullImageRequest {
  readonly image: ImageSpec | undefined;
  readonly auth: AuthConfig | undefined;
  readonly sandboxConfig: PodSandboxConfig | undefined;
}
export interface PullImageResponse {
  readonly imageRef: string;
}
export interface RemoveImageRequest {
  readonly image: ImageSpec | undefined;
}
export interface RemoveImageResponse {
}
export interface ListMetricDescriptorsRequest {
}
export interface ListMetricDescriptorsResponse {
  readonly descriptors: readonly MetricDescriptor[];
}
export interface MetricDescriptor {
  readonly name: string;
  readonly help: string;
  readonly labelKeys: readonly string[];
}
export interface ListPodSandboxMetricsRequest {
}
export interface ListPodSandboxMetricsResponse {
  readonly podMetrics: readonly PodSandboxMetrics[];
}
export interface StreamPodSandboxMetricsRequest {
}
export interface StreamPodSandboxMetricsResponse {
  readonly podSandboxMetrics: readonly PodSandboxMetrics[];
}
export interface PodSandboxMetrics {
  readonly podSandboxId: string;
  readonly metrics: readonly Metric[];
  readonly containerMetrics: readonly ContainerMetrics[];
}
export interface ContainerMetrics {
  readonly containerId: string;
  readonly metrics: readonly Metric[];
}
export interface Metric {
  readonly name: string;
  readonly timestamp: bigint;
  readonly metricType: MetricType;
  readonly labelValues: readonly string[];
  readonly value: UInt64Value | undefined;
}
export interface VersionRequest {
  readonly version: string;
}
export interface VersionResponse {
  readonly version: string;
  readonly runtimeName: string;
  readonly runtimeVersion: string;
  readonly runtimeApiVersion: string;
}
export interface NetworkConfig {
  readonly podCidr: string;
}
export interface RuntimeConfig {
  readonly networkConfig: NetworkConfig | undefined;
}
export interface UpdateRuntimeConfigRequest {
  readonly runtimeConfig: RuntimeConfig | undefined;
}
export interface UpdateRuntimeConfigResponse {
}
export interface RuntimeCondition {
  readonly type: string;
  readonly status: boolean;
  readonly reason: string;
  readonly message: string;
}
export interface RuntimeStatus {
  readonly conditions: readonly RuntimeCondition[];
}
export interface StatusRequest {
  readonly verbose: boolean;
}
export interface RuntimeHandlerFeatures {
  readonly recursiveReadOnlyMounts: boolean;
  readonly userNamespaces: boolean;
}
export interface RuntimeHandler {
  readonly name: string;
  readonly features: RuntimeHandlerFeatures | undefined;
}
export interface RuntimeFeatures {
  readonly supplementalGroupsPolicy: boolean;
  readonly userNamespacesHostNetwork: boolean;
}
export interface StatusResponse {
  readonly status: RuntimeStatus | undefined;
  readonly info: Readonly<Record<string, string>>;
  readonly runtimeHandlers: readonly RuntimeHandler[];
  readonly features: RuntimeFeatures | undefined;
}
export interface RuntimeConfigRequest {
}
export interface RuntimeConfigResponse {
  readonly linux: LinuxRuntimeConfiguration | undefined;
}
export interface LinuxRuntimeConfiguration {
  readonly cgroupDriver: CgroupDriver;
}
export interface LinuxContainerResources {
  readonly cpuPeriod: bigint;
  readonly cpuQuota: bigint;
  readonly cpuShares: bigint;
  readonly memoryLimitInBytes: bigint;
  readonly oomScoreAdj: bigint;
  readonly cpusetCpus: string;
  readonly cpusetMems: string;
  readonly hugepageLimits: readonly HugepageLimit[];
  readonly unified: Readonly<Record<string, string>>;
  readonly memorySwapLimitInBytes: bigint;
}
export interface HugepageLimit {
  readonly pageSize: string;
  readonly limit: bigint;
}
export interface WindowsContainerResources {
  readonly cpuShares: bigint;
  readonly cpuCount: bigint;
  readonly cpuMaximum: bigint;
  readonly memoryLimitInBytes: bigint;
  readonly rootfsSizeInBytes: bigint;
  readonly affinityCpus: readonly WindowsCpuGroupAffinity[];
}
export interface WindowsCpuGroupAffinity {
  readonly cpuMask: bigint;
  readonly cpuGroup: number;
}
export interface ContainerResources {
  readonly linux: LinuxContainerResources | undefined;
  readonly windows: WindowsContainerResources | undefined;
}
export interface UpdateContainerResourcesRequest {
  readonly containerId: string;
  readonly linux: LinuxContainerResources | undefined;
  readonly windows: WindowsContainerResources | undefined;
  readonly annotations: Readonly<Record<string, string>>;
}
export interface UpdateContainerResourcesResponse {
}
export interface LinuxPodSandboxConfig {
  readonly cgroupParent: string;
  readonly securityContext: LinuxSandboxSecurityContext | undefined;
  readonly sysctls: Readonly<Record<string, string>>;
  readonly overhead: LinuxContainerResources | undefined;
  readonly resources: LinuxContainerResources | undefined;
}
export interface PodSandboxConfig {
  readonly metadata: PodSandboxMetadata | undefined;
  readonly hostname: string;
  readonly logDirectory: string;
  readonly dnsConfig: DNSConfig | undefined;
  readonly portMappings: readonly PortMapping[];
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly linux: LinuxPodSandboxConfig | undefined;
  readonly windows: WindowsPodSandboxConfig | undefined;
}
export interface RunPodSandboxRequest {
  readonly config: PodSandboxConfig | undefined;
  readonly runtimeHandler: string;
}
export interface RunPodSandboxResponse {
  readonly podSandboxId: string;
}
export interface StopPodSandboxRequest {
  readonly podSandboxId: string;
}
export interface StopPodSandboxResponse {
}
export interface RemovePodSandboxRequest {
  readonly podSandboxId: string;
}
export interface RemovePodSandboxResponse {
}
export interface PodSandboxStatusRequest {
  readonly podSandboxId: string;
  readonly verbose: boolean;
}
export interface PodSandboxNetworkStatus {
  readonly ip: string;
  readonly additionalIps: readonly PodIP[];
}
export interface LinuxPodSandboxStatus {
  readonly namespaces: Namespace | undefined;
}
export interface PodSandboxStatus {
  readonly id: string;
  readonly metadata: PodSandboxMetadata | undefined;
  readonly state: PodSandboxState;
  readonly createdAt: bigint;
  readonly network: PodSandboxNetworkStatus | undefined;
  readonly linux: LinuxPodSandboxStatus | undefined;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly runtimeHandler: string;
}
export interface PodSandboxStatusResponse {
  readonly status: PodSandboxStatus | undefined;
  readonly info: Readonly<Record<string, string>>;
  readonly containersStatuses: readonly ContainerStatus[];
  readonly timestamp: bigint;
}
export interface PodSandboxStateValue {
  readonly state: PodSandboxState;
}
export interface PodSandboxFilter {
  readonly id: string;
  readonly state: PodSandboxStateValue | undefined;
  readonly labelSelector: Readonly<Record<string, string>>;
}
export interface ListPodSandboxRequest {
  readonly filter: PodSandboxFilter | undefined;
}
export interface PodSandbox {
  readonly id: string;
  readonly metadata: PodSandboxMetadata | undefined;
  readonly state: PodSandboxState;
  readonly createdAt: bigint;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly runtimeHandler: string;
}
export interface ListPodSandboxResponse {
  readonly items: readonly PodSandbox[];
}
export interface StreamPodSandboxesRequest {
  readonly filter: PodSandboxFilter | undefined;
}
export interface StreamPodSandboxesResponse {
  readonly podSandboxes: readonly PodSandbox[];
}
export interface UpdatePodSandboxResourcesRequest {
  readonly podSandboxId: string;
  readonly overhead: LinuxContainerResources | undefined;
  readonly resources: LinuxContainerResources | undefined;
}
export interface UpdatePodSandboxResourcesResponse {
}
export interface UserNamespace {
  readonly mode: NamespaceMode;
  readonly uids: readonly IDMapping[];
  readonly gids: readonly IDMapping[];
}
export interface NamespaceOption {
  readonly network: NamespaceMode;
  readonly pid: NamespaceMode;
  readonly ipc: NamespaceMode;
  readonly targetId: string;
  readonly usernsOptions: UserNamespace | undefined;
}
export interface LinuxSandboxSecurityContext {
  readonly namespaceOptions: NamespaceOption | undefined;
  readonly selinuxOptions: SELinuxOption | undefined;
  readonly runAsUser: Int64Value | undefined;
  readonly runAsGroup: Int64Value | undefined;
  readonly readonlyRootfs: boolean;
  readonly supplementalGroups: readonly bigint[];
  readonly supplementalGroupsPolicy: SupplementalGroupsPolicy;
  readonly privileged: boolean;
  readonly seccomp: SecurityProfile | undefined;
  readonly apparmor: SecurityProfile | undefined;
  readonly seccompProfilePath: string;
}
export interface SecurityProfile {
  readonly profileType: SecurityProfileProfileType;
  readonly localhostRef: string;
}
export interface Namespace {
  readonly options: NamespaceOption | undefined;
}
export interface SELinuxOption {
  readonly user: string;
  readonly role: string;
  readonly type: string;
  readonly level: string;
}
export interface Capability {
  readonly addCapabilities: readonly string[];
  readonly dropCapabilities: readonly string[];
  readonly addAmbientCapabilities: readonly string[];
}
export interface LinuxContainerSecurityContext {
  readonly capabilities: Capability | undefined;
  readonly privileged: boolean;
  readonly namespaceOptions: NamespaceOption | undefined;
  readonly selinuxOptions: SELinuxOption | undefined;
  readonly runAsUser: Int64Value | undefined;
  readonly runAsGroup: Int64Value | undefined;
  readonly runAsUsername: string;
  readonly readonlyRootfs: boolean;
  readonly supplementalGroups: readonly bigint[];
  readonly supplementalGroupsPolicy: SupplementalGroupsPolicy;
  readonly noNewPrivs: boolean;
  readonly maskedPaths: readonly string[];
  readonly readonlyPaths: readonly string[];
  readonly seccomp: SecurityProfile | undefined;
  readonly apparmor: SecurityProfile | undefined;
  readonly apparmorProfile: string;
  readonly seccompProfilePath: string;
}
export interface LinuxContainerUser {
  readonly uid: bigint;
  readonly gid: bigint;
  readonly supplementalGroups: readonly bigint[];
}
export interface ContainerUser {
  readonly linux: LinuxContainerUser | undefined;
}
export interface PodSandboxStatsRequest {
  readonly podSandboxId: string;
}
export interface PodSandboxStatsResponse {
  readonly stats: PodSandboxStats | undefined;
}
export interface PodSandboxStatsFilter {
  readonly id: string;
  readonly labelSelector: Readonly<Record<string, string>>;
}
export interface ListPodSandboxStatsRequest {
  readonly filter: PodSandboxStatsFilter | undefined;
}
export interface ListPodSandboxStatsResponse {
  readonly stats: readonly PodSandboxStats[];
}
export interface StreamPodSandboxStatsRequest {
  readonly filter: PodSandboxStatsFilter | undefined;
}
export interface StreamPodSandboxStatsResponse {
  readonly podSandboxStats: readonly PodSandboxStats[];
}
export interface PodSandboxAttributes {
  readonly id: string;
  readonly metadata: PodSandboxMetadata | undefined;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}
export interface PodSandboxStats {
  readonly attributes: PodSandboxAttributes | undefined;
  readonly linux: LinuxPodSandboxStats | undefined;
  readonly windows: WindowsPodSandboxStats | undefined;
}
export interface LinuxPodSandboxStats {
  readonly cpu: CpuUsage | undefined;
  readonly memory: MemoryUsage | undefined;
  readonly network: NetworkUsage | undefined;
  readonly process: ProcessUsage | undefined;
  readonly containers: readonly ContainerStats[];
  readonly io: IoUsage | undefined;
}
export interface WindowsPodSandboxStats {
  readonly cpu: WindowsCpuUsage | undefined;
  readonly memory: WindowsMemoryUsage | undefined;
  readonly network: WindowsNetworkUsage | undefined;
  readonly process: WindowsProcessUsage | undefined;
  readonly containers: readonly WindowsContainerStats[];
}
export interface NetworkUsage {
  readonly timestamp: bigint;
  readonly defaultInterface: NetworkInterfaceUsage | undefined;
  readonly interfaces: readonly NetworkInterfaceUsage[];
}
export interface WindowsNetworkUsage {
  readonly timestamp: bigint;
  readonly defaultInterface: WindowsNetworkInterfaceUsage | undefined;
  readonly interfaces: readonly WindowsNetworkInterfaceUsage[];
}
export interface NetworkInterfaceUsage {
  readonly name: string;
  readonly rxBytes: UInt64Value | undefined;
  readonly rxErrors: UInt64Value | undefined;
  readonly txBytes: UInt64Value | undefined;
  readonly txErrors: UInt64Value | undefined;
}
export interface WindowsNetworkInterfaceUsage {
  readonly name: string;
  readonly rxBytes: UInt64Value | undefined;
  readonly rxPacketsDropped: UInt64Value | undefined;
  readonly txBytes: UInt64Value | undefined;
  readonly txPacketsDropped: UInt64Value | undefined;
}
export interface ProcessUsage {
  readonly timestamp: bigint;
  readonly processCount: UInt64Value | undefined;
}
export interface WindowsProcessUsage {
  readonly timestamp: bigint;
  readonly processCount: UInt64Value | undefined;
}
export interface ImageFsInfoRequest {
}
export interface FilesystemUsage {
  readonly timestamp: bigint;
  readonly fsId: FilesystemIdentifier | undefined;
  readonly usedBytes: UInt64Value | undefined;
  readonly inodesUsed: UInt64Value | undefined;
}
export interface WindowsFilesystemUsage {
  readonly timestamp: bigint;
  readonly fsId: FilesystemIdentifier | undefined;
  readonly usedBytes: UInt64Value | undefined;
}
export interface ImageFsInfoResponse {
  readonly imageFilesystems: readonly FilesystemUsage[];
  readonly containerFilesystems: readonly FilesystemUsage[];
}
export interface ContainerStatsRequest {
  readonly containerId: string;
}
export interface ContainerStatsResponse {
  readonly stats: ContainerStats | undefined;
}
export interface ListContainerStatsRequest {
  readonly filter: ContainerStatsFilter | undefined;
}
export interface ContainerStatsFilter {
  readonly id: string;
  readonly podSandboxId: string;
  readonly labelSelector: Readonly<Record<string, string>>;
}
export interface ListContainerStatsResponse {
  readonly stats: readonly ContainerStats[];
}
export interface StreamContainerStatsRequest {
  readonly filter: ContainerStatsFilter | undefined;
}
export interface StreamContainerStatsResponse {
  readonly containerStats: readonly ContainerStats[];
}
export interface ContainerAttributes {
  readonly id: string;
  readonly metadata: ContainerMetadata | undefined;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}
export interface ContainerStats {
  readonly attributes: ContainerAttributes | undefined;
  readonly cpu: CpuUsage | undefined;
  readonly memory: MemoryUsage | undefined;
  readonly writableLayer: FilesystemUsage | undefined;
  readonly swap: SwapUsage | undefined;
  readonly io: IoUsage | undefined;
}
export interface WindowsContainerStats {
  readonly attributes: ContainerAttributes | undefined;
  readonly cpu: WindowsCpuUsage | undefined;
  readonly memory: WindowsMemoryUsage | undefined;
  readonly writableLayer: WindowsFilesystemUsage | undefined;
}
export interface PsiStats {
  readonly Full: PsiData | undefined;
  readonly Some: PsiData | undefined;
}
export interface PsiData {
  readonly Total: bigint;
  readonly Avg10: number;
  readonly Avg60: number;
  readonly Avg300: number;
}
export interface CpuUsage {
  readonly timestamp: bigint;
  readonly usageCoreNanoSeconds: UInt64Value | undefined;
  readonly usageNanoCores: UInt64Value | undefined;
  readonly psi: PsiStats | undefined;
}
export interface WindowsCpuUsage {
  readonly timestamp: bigint;
  readonly usageCoreNanoSeconds: UInt64Value | undefined;
  readonly usageNanoCores: UInt64Value | undefined;
}
export interface MemoryUsage {
  readonly timestamp: bigint;
  readonly workingSetBytes: UInt64Value | undefined;
  readonly availableBytes: UInt64Value | undefined;
  readonly usageBytes: UInt64Value | undefined;
  readonly rssBytes: UInt64Value | undefined;
  readonly pageFaults: UInt64Value | undefined;
  readonly majorPageFaults: UInt64Value | undefined;
  readonly psi: PsiStats | undefined;
}
export interface IoUsage {
  readonly timestamp: bigint;
  readonly psi: PsiStats | undefined;
}
export interface SwapUsage {
  readonly timestamp: bigint;
  readonly swapAvailableBytes: UInt64Value | undefined;
  readonly swapUsageBytes: UInt64Value | undefined;
}
export interface WindowsMemoryUsage {
  readonly timestamp: bigint;
  readonly workingSetBytes: UInt64Value | undefined;
  readonly availableBytes: UInt64Value | undefined;
  readonly pageFaults: UInt64Value | undefined;
  readonly commitMemoryBytes: UInt64Value | undefined;
}
export interface ExecSyncRequest {
  readonly containerId: string;
  readonly cmd: readonly string[];
  readonly timeout: bigint;
}
export interface ExecSyncResponse {
  readonly stdout: Uint8Array;
  readonly stderr: Uint8Array;
  readonly exitCode: number;
}
export interface ExecRequest {
  readonly containerId: string;
  readonly cmd: readonly string[];
  readonly tty: boolean;
  readonly stdin: boolean;
  readonly stdout: boolean;
  readonly stderr: boolean;
}
export interface ExecResponse {
  readonly url: string;
}
export interface AttachRequest {
  readonly containerId: string;
  readonly stdin: boolean;
  readonly tty: boolean;
  readonly stdout: boolean;
  readonly stderr: boolean;
}
export interface AttachResponse {
  readonly url: string;
}
export interface PortForwardRequest {
  readonly podSandboxId: string;
  readonly port: readonly number[];
}
export interface PortForwardResponse {
  readonly url: string;
}
export interface DNSConfig {
  readonly servers: readonly string[];
  readonly searches: readonly string[];
  readonly options: readonly string[];
}
export interface PortMapping {
  readonly protocol: Protocol;
  readonly containerPort: number;
  readonly hostPort: number;
  readonly hostIp: string;
}
export interface IDMapping {
  readonly hostId: number;
  readonly containerId: number;
  readonly length: number;
}
export interface Int64Value {
  readonly value: bigint;
}
export interface PodSandboxMetadata {
  readonly name: string;
  readonly uid: string;
  readonly namespace: string;
  readonly attempt: number;
}
export interface PodIP {
  readonly ip: string;
}
export interface ImageSpec {
  readonly image: string;
  readonly annotations: Readonly<Record<string, string>>;
  readonly userSpecifiedImage: string;
  readonly runtimeHandler: string;
  readonly imageRef: string;
}
export interface KeyValue {
  readonly key: string;
  readonly value: Uint8Array;
}
export interface ContainerMetadata {
  readonly name: string;
  readonly attempt: number;
}
export interface UInt64Value {
  readonly value: bigint;
}
export interface FilesystemIdentifier {
  readonly mountpoint: string;
}
export interface WindowsNamespaceOption {
  readonly network: NamespaceMode;
}
export interface WindowsSandboxSecurityContext {
  readonly runAsUsername: string;
  readonly credentialSpec: string;
  readonly hostProcess: boolean;
  readonly namespaceOptions: WindowsNamespaceOption | undefined;
}
export interface WindowsPodSandboxConfig {
  readonly securityContext: WindowsSandboxSecurityContext | undefined;
}
export interface WindowsContainerSecurityContext {
  readonly runAsUsername: string;
  readonly credentialSpec: string;
  readonly hostProcess: boolean;
}
export interface WindowsContainerConfig {
  readonly resources: WindowsContainerResources | undefined;
  readonly securityContext: WindowsContainerSecurityContext | undefined;
}
const schema = new Schema(`
enum MountPropagation|PROPAGATION_PRIVATE 0|PROPAGATION_HOST_TO_CONTAINER 1|PROPAGATION_BIDIRECTIONAL 2
enum ContainerState|CONTAINER_CREATED 0|CONTAINER_RUNNING 1|CONTAINER_EXITED 2|CONTAINER_UNKNOWN 3
enum ContainerEventType|CONTAINER_CREATED_EVENT 0|CONTAINER_STARTED_EVENT 1|CONTAINER_STOPPED_EVENT 2|CONTAINER_DELETED_EVENT 3
enum MetricType|COUNTER 0|GAUGE 1
enum CgroupDriver|SYSTEMD 0|CGROUPFS 1
enum PodSandboxState|SANDBOX_READY 0|SANDBOX_NOTREADY 1
enum NamespaceMode|POD 0|CONTAINER 1|NODE 2|TARGET 3
enum SupplementalGroupsPolicy|Merge 0|Strict 1
enum SecurityProfileProfileType|RuntimeDefault 0|Unconfined 1|Localhost 2
enum Protocol|TCP 0|UDP 1|SCTP 2
enum Signal|RUNTIME_DEFAULT 0|SIGABRT 1|SIGALRM 2|SIGBUS 3|SIGCHLD 4|SIGCLD 5|SIGCONT 6|SIGFPE 7|SIGHUP 8|SIGILL 9|SIGINT 10|SIGIO 11|SIGIOT 12|SIGKILL 13|SIGPIPE 14|SIGPOLL 15|SIGPROF 16|SIGPWR 17|SIGQUIT 18|SIGSEGV 19|SIGSTKFLT 20|SIGSTOP 21|SIGSYS 22|SIGTERM 23|SIGTRAP 24|SIGTSTP 25|SIGTTIN 26|SIGTTOU 27|SIGURG 28|SIGUSR1 29|SIGUSR2 30|SIGVTALRM 31|SIGWINCH 32|SIGXCPU 33|SIGXFSZ 34|SIGRTMIN 35|SIGRTMINPLUS1 36|SIGRTMINPLUS2 37|SIGRTMINPLUS3 38|SIGRTMINPLUS4 39|SIGRTMINPLUS5 40|SIGRTMINPLUS6 41|SIGRTMINPLUS7 42|SIGRTMINPLUS8 43|SIGRTMINPLUS9 44|SIGRTMINPLUS10 45|SIGRTMINPLUS11 46|SIGRTMINPLUS12 47|SIGRTMINPLUS13 48|SIGRTMINPLUS14 49|SIGRTMINPLUS15 50|SIGRTMAXMINUS14 51|SIGRTMAXMINUS13 52|SIGRTMAXMINUS12 53|SIGRTMAXMINUS11 54|SIGRTMAXMINUS10 55|SIGRTMAXMINUS9 56|SIGRTMAXMINUS8 57|SIGRTMAXMINUS7 58|SIGRTMAXMINUS6 59|SIGRTMAXMINUS5 60|SIGRTMAXMINUS4 61|SIGRTMAXMINUS3 62|SIGRTMAXMINUS2 63|SIGRTMAXMINUS1 64|SIGRTMAX 65
message Mount|1 containerPath string|2 hostPath string|3 readonly bool|4 selinuxRelabel bool|5 propagation MountPropagation|6 uidMappings repeated IDMapping|7 gidMappings repeated IDMapping|8 recursiveReadOnly bool|9 image ImageSpec|10 imageSubPath string
message LinuxContainerConfig|1 resources LinuxContainerResources|2 securityContext LinuxContainerSecurityContext
message Device|1 containerPath string|2 hostPath string|3 permissions string
message CDIDevice|1 name string
message ContainerConfig|1 metadata ContainerMetadata|2 image ImageSpec|3 command repeated string|4 args repeated string|5 workingDir string|6 envs repeated KeyValue|7 mounts repeated Mount|8 devices repeated Device|9 labels map string string|10 annotations map string string|11 logPath string|12 stdin bool|13 stdinOnce bool|14 tty bool|15 linux LinuxContainerConfig|16 windows WindowsContainerConfig|17 CDIDevices repeated CDIDevice|18 stopSignal Signal
message CreateContainerRequest|1 podSandboxId string|2 config ContainerConfig|3 sandboxConfig PodSandboxConfig
message CreateContainerResponse|1 containerId string
message StartContainerRequest|1 containerId string
message StartContainerResponse
message StopContainerRequest|1 containerId string|2 timeout int64
message StopContainerResponse
message RemoveContainerRequest|1 containerId string
message RemoveContainerResponse
message ContainerStateValue|1 state ContainerState
message ContainerFilter|1 id string|2 state ContainerStateValue|3 podSandboxId string|4 labelSelector map string string
message ListContainersRequest|1 filter ContainerFilter
message Container|1 id string|2 podSandboxId string|3 metadata ContainerMetadata|4 image ImageSpec|5 imageRef string|6 state ContainerState|7 createdAt int64|8 labels map string string|9 annotations map string string|10 imageId string
message ListContainersResponse|1 containers repeated Container
message StreamContainersRequest|1 filter ContainerFilter
message StreamContainersResponse|1 containers repeated Container
message ContainerStatusRequest|1 containerId string|2 verbose bool
message ContainerStatus|1 id string|2 metadata ContainerMetadata|3 state ContainerState|4 createdAt int64|5 startedAt int64|6 finishedAt int64|7 exitCode int32|8 image ImageSpec|9 imageRef string|10 reason string|11 message string|12 labels map string string|13 annotations map string string|14 mounts repeated Mount|15 logPath string|16 resources ContainerResources|17 imageId string|18 user ContainerUser|19 stopSignal Signal
message ContainerStatusResponse|1 status ContainerStatus|2 info map string string
message ReopenContainerLogRequest|1 containerId string
message ReopenContainerLogResponse
message CheckpointContainerRequest|1 containerId string|2 location string|3 timeout int64
message CheckpointContainerResponse
message GetEventsRequest
message ContainerEventResponse|1 containerId string|2 containerEventType ContainerEventType|3 createdAt int64|4 podSandboxStatus PodSandboxStatus|5 containersStatuses repeated ContainerStatus
message ImageFilter|1 image ImageSpec
message ListImagesRequest|1 filter ImageFilter
message Image|1 id string|2 repoTags repeated string|3 repoDigests repeated string|4 size uint64|5 uid Int64Value|6 username string|7 spec ImageSpec|8 pinned bool
message ListImagesResponse|1 images repeated Image
message StreamImagesRequest|1 filter ImageFilter
message StreamImagesResponse|1 images repeated Image
message ImageStatusRequest|1 image ImageSpec|2 verbose bool
message ImageStatusResponse|1 image Image|2 info map string string
message AuthConfig|1 username string|2 password string|3 auth string|4 serverAddress string|5 identityToken string|6 registryToken string
message PullImageRequest|1 image ImageSpec|2 auth AuthConfig|3 sandboxConfig PodSandboxConfig
message PullImageResponse|1 imageRef string
message RemoveImageRequest|1 image ImageSpec
message RemoveImageResponse
message ListMetricDescriptorsRequest
message ListMetricDescriptorsResponse|1 descriptors repeated MetricDescriptor
message MetricDescriptor|1 name string|2 help string|3 labelKeys repeated string
message ListPodSandboxMetricsRequest
message ListPodSandboxMetricsResponse|1 podMetrics repeated PodSandboxMetrics
message StreamPodSandboxMetricsRequest
message StreamPodSandboxMetricsResponse|1 podSandboxMetrics repeated PodSandboxMetrics
message PodSandboxMetrics|1 podSandboxId string|2 metrics repeated Metric|3 containerMetrics repeated ContainerMetrics
message ContainerMetrics|1 containerId string|2 metrics repeated Metric
message Metric|1 name string|2 timestamp int64|3 metricType MetricType|4 labelValues repeated string|5 value UInt64Value
message VersionRequest|1 version string
message VersionResponse|1 version string|2 runtimeName string|3 runtimeVersion string|4 runtimeApiVersion string
message NetworkConfig|1 podCidr string
message RuntimeConfig|1 networkConfig NetworkConfig
message UpdateRuntimeConfigRequest|1 runtimeConfig RuntimeConfig
message UpdateRuntimeConfigResponse
message RuntimeCondition|1 type string|2 status bool|3 reason string|4 message string
message RuntimeStatus|1 conditions repeated RuntimeCondition
message StatusRequest|1 verbose bool
message RuntimeHandlerFeatures|1 recursiveReadOnlyMounts bool|2 userNamespaces bool
message RuntimeHandler|1 name string|2 features RuntimeHandlerFeatures
message RuntimeFeatures|1 supplementalGroupsPolicy bool|2 userNamespacesHostNetwork bool
message StatusResponse|1 status RuntimeStatus|2 info map string string|3 runtimeHandlers repeated RuntimeHandler|4 features RuntimeFeatures
message RuntimeConfigRequest
message RuntimeConfigResponse|1 linux LinuxRuntimeConfiguration
message LinuxRuntimeConfiguration|1 cgroupDriver CgroupDriver
message LinuxContainerResources|1 cpuPeriod int64|2 cpuQuota int64|3 cpuShares int64|4 memoryLimitInBytes int64|5 oomScoreAdj int64|6 cpusetCpus string|7 cpusetMems string|8 hugepageLimits repeated HugepageLimit|9 unified map string string|10 memorySwapLimitInBytes int64
message HugepageLimit|1 pageSize string|2 limit uint64
message WindowsContainerResources|1 cpuShares int64|2 cpuCount int64|3 cpuMaximum int64|4 memoryLimitInBytes int64|5 rootfsSizeInBytes int64|6 affinityCpus repeated WindowsCpuGroupAffinity
message WindowsCpuGroupAffinity|1 cpuMask uint64|2 cpuGroup uint32
message ContainerResources|1 linux LinuxContainerResources|2 windows WindowsContainerResources
message UpdateContainerResourcesRequest|1 containerId string|2 linux LinuxContainerResources|3 windows WindowsContainerResources|4 annotations map string string
message UpdateContainerResourcesResponse
message LinuxPodSandboxConfig|1 cgroupParent string|2 securityContext LinuxSandboxSecurityContext|3 sysctls map string string|4 overhead LinuxContainerResources|5 resources LinuxContainerResources
message PodSandboxConfig|1 metadata PodSandboxMetadata|2 hostname string|3 logDirectory string|4 dnsConfig DNSConfig|5 portMappings repeated PortMapping|6 labels map string string|7 annotations map string string|8 linux LinuxPodSandboxConfig|9 windows WindowsPodSandboxConfig
message RunPodSandboxRequest|1 config PodSandboxConfig|2 runtimeHandler string
message RunPodSandboxResponse|1 podSandboxId string
message StopPodSandboxRequest|1 podSandboxId string
message StopPodSandboxResponse
message RemovePodSandboxRequest|1 podSandboxId string
message RemovePodSandboxResponse
message PodSandboxStatusRequest|1 podSandboxId string|2 verbose bool
message PodSandboxNetworkStatus|1 ip string|2 additionalIps repeated PodIP
message LinuxPodSandboxStatus|1 namespaces Namespace
message PodSandboxStatus|1 id string|2 metadata PodSandboxMetadata|3 state PodSandboxState|4 createdAt int64|5 network PodSandboxNetworkStatus|6 linux LinuxPodSandboxStatus|7 labels map string string|8 annotations map string string|9 runtimeHandler string
message PodSandboxStatusResponse|1 status PodSandboxStatus|2 info map string string|3 containersStatuses repeated ContainerStatus|4 timestamp int64
message PodSandboxStateValue|1 state PodSandboxState
message PodSandboxFilter|1 id string|2 state PodSandboxStateValue|3 labelSelector map string string
message ListPodSandboxRequest|1 filter PodSandboxFilter
message PodSandbox|1 id string|2 metadata PodSandboxMetadata|3 state PodSandboxState|4 createdAt int64|5 labels map string string|6 annotations map string string|7 runtimeHandler string
message ListPodSandboxResponse|1 items repeated PodSandbox
message StreamPodSandboxesRequest|1 filter PodSandboxFilter
message StreamPodSandboxesResponse|1 podSandboxes repeated PodSandbox
message UpdatePodSandboxResourcesRequest|1 podSandboxId string|2 overhead LinuxContainerResources|3 resources LinuxContainerResources
message UpdatePodSandboxResourcesResponse
message UserNamespace|1 mode NamespaceMode|2 uids repeated IDMapping|3 gids repeated IDMapping
message NamespaceOption|1 network NamespaceMode|2 pid NamespaceMode|3 ipc NamespaceMode|4 targetId string|5 usernsOptions UserNamespace
message LinuxSandboxSecurityContext|1 namespaceOptions NamespaceOption|2 selinuxOptions SELinuxOption|3 runAsUser Int64Value|8 runAsGroup Int64Value|4 readonlyRootfs bool|5 supplementalGroups repeated int64|11 supplementalGroupsPolicy SupplementalGroupsPolicy|6 privileged bool|9 seccomp SecurityProfile|10 apparmor SecurityProfile|7 seccompProfilePath string
message SecurityProfile|1 profileType SecurityProfileProfileType|2 localhostRef string
message Namespace|2 options NamespaceOption
message SELinuxOption|1 user string|2 role string|3 type string|4 level string
message Capability|1 addCapabilities repeated string|2 dropCapabilities repeated string|3 addAmbientCapabilities repeated string
message LinuxContainerSecurityContext|1 capabilities Capability|2 privileged bool|3 namespaceOptions NamespaceOption|4 selinuxOptions SELinuxOption|5 runAsUser Int64Value|12 runAsGroup Int64Value|6 runAsUsername string|7 readonlyRootfs bool|8 supplementalGroups repeated int64|17 supplementalGroupsPolicy SupplementalGroupsPolicy|11 noNewPrivs bool|13 maskedPaths repeated string|14 readonlyPaths repeated string|15 seccomp SecurityProfile|16 apparmor SecurityProfile|9 apparmorProfile string|10 seccompProfilePath string
message LinuxContainerUser|1 uid int64|2 gid int64|3 supplementalGroups repeated int64
message ContainerUser|1 linux LinuxContainerUser
message PodSandboxStatsRequest|1 podSandboxId string
message PodSandboxStatsResponse|1 stats PodSandboxStats
message PodSandboxStatsFilter|1 id string|2 labelSelector map string string
message ListPodSandboxStatsRequest|1 filter PodSandboxStatsFilter
message ListPodSandboxStatsResponse|1 stats repeated PodSandboxStats
message StreamPodSandboxStatsRequest|1 filter PodSandboxStatsFilter
message StreamPodSandboxStatsResponse|1 podSandboxStats repeated PodSandboxStats
message PodSandboxAttributes|1 id string|2 metadata PodSandboxMetadata|3 labels map string string|4 annotations map string string
message PodSandboxStats|1 attributes PodSandboxAttributes|2 linux LinuxPodSandboxStats|3 windows WindowsPodSandboxStats
message LinuxPodSandboxStats|1 cpu CpuUsage|2 memory MemoryUsage|3 network NetworkUsage|4 process ProcessUsage|5 containers repeated ContainerStats|6 io IoUsage
message WindowsPodSandboxStats|1 cpu WindowsCpuUsage|2 memory WindowsMemoryUsage|3 network WindowsNetworkUsage|4 process WindowsProcessUsage|5 containers repeated WindowsContainerStats
message NetworkUsage|1 timestamp int64|2 defaultInterface NetworkInterfaceUsage|3 interfaces repeated NetworkInterfaceUsage
message WindowsNetworkUsage|1 timestamp int64|2 defaultInterface WindowsNetworkInterfaceUsage|3 interfaces repeated WindowsNetworkInterfaceUsage
message NetworkInterfaceUsage|1 name string|2 rxBytes UInt64Value|3 rxErrors UInt64Value|4 txBytes UInt64Value|5 txErrors UInt64Value
message WindowsNetworkInterfaceUsage|1 name string|2 rxBytes UInt64Value|3 rxPacketsDropped UInt64Value|4 txBytes UInt64Value|5 txPacketsDropped UInt64Value
message ProcessUsage|1 timestamp int64|2 processCount UInt64Value
message WindowsProcessUsage|1 timestamp int64|2 processCount UInt64Value
message ImageFsInfoRequest
message FilesystemUsage|1 timestamp int64|2 fsId FilesystemIdentifier|3 usedBytes UInt64Value|4 inodesUsed UInt64Value
message WindowsFilesystemUsage|1 timestamp int64|2 fsId FilesystemIdentifier|3 usedBytes UInt64Value
message ImageFsInfoResponse|1 imageFilesystems repeated FilesystemUsage|2 containerFilesystems repeated FilesystemUsage
message ContainerStatsRequest|1 containerId string
message ContainerStatsResponse|1 stats ContainerStats
message ListContainerStatsRequest|1 filter ContainerStatsFilter
message ContainerStatsFilter|1 id string|2 podSandboxId string|3 labelSelector map string string
message ListContainerStatsResponse|1 stats repeated ContainerStats
message StreamContainerStatsRequest|1 filter ContainerStatsFilter
message StreamContainerStatsResponse|1 containerStats repeated ContainerStats
message ContainerAttributes|1 id string|2 metadata ContainerMetadata|3 labels map string string|4 annotations map string string
message ContainerStats|1 attributes ContainerAttributes|2 cpu CpuUsage|3 memory MemoryUsage|4 writableLayer FilesystemUsage|5 swap SwapUsage|6 io IoUsage
message WindowsContainerStats|1 attributes ContainerAttributes|2 cpu WindowsCpuUsage|3 memory WindowsMemoryUsage|4 writableLayer WindowsFilesystemUsage
message PsiStats|1 Full PsiData|2 Some PsiData
message PsiData|1 Total uint64|2 Avg10 double|3 Avg60 double|4 Avg300 double
message CpuUsage|1 timestamp int64|2 usageCoreNanoSeconds UInt64Value|3 usageNanoCores UInt64Value|4 psi PsiStats
message WindowsCpuUsage|1 timestamp int64|2 usageCoreNanoSeconds UInt64Value|3 usageNanoCores UInt64Value
message MemoryUsage|1 timestamp int64|2 workingSetBytes UInt64Value|3 availableBytes UInt64Value|4 usageBytes UInt64Value|5 rssBytes UInt64Value|6 pageFaults UInt64Value|7 majorPageFaults UInt64Value|8 psi PsiStats
message IoUsage|1 timestamp int64|2 psi PsiStats
message SwapUsage|1 timestamp int64|2 swapAvailableBytes UInt64Value|3 swapUsageBytes UInt64Value
message WindowsMemoryUsage|1 timestamp int64|2 workingSetBytes UInt64Value|3 availableBytes UInt64Value|4 pageFaults UInt64Value|5 commitMemoryBytes UInt64Value
message ExecSyncRequest|1 containerId string|2 cmd repeated string|3 timeout int64
message ExecSyncResponse|1 stdout bytes|2 stderr bytes|3 exitCode int32
message ExecRequest|1 containerId string|2 cmd repeated string|3 tty bool|4 stdin bool|5 stdout bool|6 stderr bool
message ExecResponse|1 url string
message AttachRequest|1 containerId string|2 stdin bool|3 tty bool|4 stdout bool|5 stderr bool
message AttachResponse|1 url string
message PortForwardRequest|1 podSandboxId string|2 port repeated int32
message PortForwardResponse|1 url string
message DNSConfig|1 servers repeated string|2 searches repeated string|3 options repeated string
message PortMapping|1 protocol Protocol|2 containerPort int32|3 hostPort int32|4 hostIp string
message IDMapping|1 hostId uint32|2 containerId uint32|3 length uint32
message Int64Value|1 value int64
message PodSandboxMetadata|1 name string|2 uid string|3 namespace string|4 attempt uint32
message PodIP|1 ip string
message ImageSpec|1 image string|2 annotations map string string|18 userSpecifiedImage string|19 runtimeHandler string|20 imageRef string
message KeyValue|1 key string|2 value bytes
message ContainerMetadata|1 name string|2 attempt uint32
message UInt64Value|1 value uint64
message FilesystemIdentifier|1 mountpoint string
message WindowsNamespaceOption|1 network NamespaceMode
message WindowsSandboxSecurityContext|1 runAsUsername string|2 credentialSpec string|3 hostProcess bool|4 namespaceOptions WindowsNamespaceOption
message WindowsPodSandboxConfig|1 securityContext WindowsSandboxSecurityContext
message WindowsContainerSecurityContext|1 runAsUsername string|2 credentialSpec string|3 hostProcess bool
message WindowsContainerConfig|1 resources WindowsContainerResources|2 securityContext WindowsContainerSecurityContext
`);

export const Mount: MessageType<Mount> = schema.message('Mount');
export const LinuxContainerConfig: MessageType<LinuxContainerConfig> = schema.message('LinuxContainerConfig');
export const Device: MessageType<Device> = schema.message('Device');
export const CDIDevice: MessageType<CDIDevice> = schema.message('CDIDevice');
export const ContainerConfig: MessageType<ContainerConfig> = schema.message('ContainerConfig');
export const CreateContainerRequest: MessageType<CreateContainerRequest> = schema.message('CreateContainerRequest');
export const CreateContainerResponse: MessageType<CreateContainerResponse> = schema.message('CreateContainerResponse');
export const StartContainerRequest: MessageType<StartContainerRequest> = schema.message('StartContainerRequest');
export const StartContainerResponse: MessageType<StartContainerResponse> = schema.message('StartContainerResponse');
export const StopContainerRequest: MessageType<StopContainerRequest> = schema.message('StopContainerRequest');
export const StopContainerResponse: MessageType<StopContainerResponse> = schema.message('StopContainerResponse');
export const RemoveContainerRequest: MessageType<RemoveContainerRequest> = schema.message('RemoveContainerRequest');
export const RemoveContainerResponse: MessageType<RemoveContainerResponse> = schema.message('RemoveContainerResponse');
export const ContainerStateValue: MessageType<ContainerStateValue> = schema.message('ContainerStateValue');
export const ContainerFilter: MessageType<ContainerFilter> = schema.message('ContainerFilter');
export const ListContainersRequest: MessageType<ListContainersRequest> = schema.message('ListContainersRequest');
export const Container: MessageType<Container> = schema.message('Container');
export const ListContainersResponse: MessageType<ListContainersResponse> = schema.message('ListContainersResponse');
export const StreamContainersRequest: MessageType<StreamContainersRequest> = schema.message('StreamContainersRequest');
export const StreamContainersResponse: MessageType<StreamContainersResponse> = schema.message('StreamContainersResponse');
export const ContainerStatusRequest: MessageType<ContainerStatusRequest> = schema.message('ContainerStatusRequest');
export const ContainerStatus: MessageType<ContainerStatus> = schema.message('ContainerStatus');
export const ContainerStatusResponse: MessageType<ContainerStatusResponse> = schema.message('ContainerStatusResponse');
export const ReopenContainerLogRequest: MessageType<ReopenContainerLogRequest> = schema.message('ReopenContainerLogRequest');
export const ReopenContainerLogResponse: MessageType<ReopenContainerLogResponse> = schema.message('ReopenContainerLogResponse');
export const CheckpointContainerRequest: MessageType<CheckpointContainerRequest> = schema.message('CheckpointContainerRequest');
export const CheckpointContainerResponse: MessageType<CheckpointContainerResponse> = schema.message('CheckpointContainerResponse');
export const GetEventsRequest: MessageType<GetEventsRequest> = schema.message('GetEventsRequest');
export const ContainerEventResponse: MessageType<ContainerEventResponse> = schema.message('ContainerEventResponse');
export const ImageFilter: MessageType<ImageFilter> = schema.message('ImageFilter');
export const ListImagesRequest: MessageType<ListImagesRequest> = schema.message('ListImagesRequest');
export const Image: MessageType<Image> = schema.message('Image');
export const ListImagesResponse: MessageType<ListImagesResponse> = schema.message('ListImagesResponse');
export const StreamImagesRequest: MessageType<StreamImagesRequest> = schema.message('StreamImagesRequest');
export const StreamImagesResponse: MessageType<StreamImagesResponse> = schema.message('StreamImagesResponse');
export const ImageStatusRequest: MessageType<ImageStatusRequest> = schema.message('ImageStatusRequest');
export const ImageStatusResponse: MessageType<ImageStatusResponse> = schema.message('ImageStatusResponse');
export const AuthConfig: MessageType<AuthConfig> = schema.message('AuthConfig');
export const PullImageRequest: MessageType<PullImageRequest> = schema.message('PullImageRequest');
export const PullImageResponse: MessageType<PullImageResponse> = schema.message('PullImageResponse');
export const RemoveImageRequest: MessageType<RemoveImageRequest> = schema.message('RemoveImageRequest');
export const RemoveImageResponse: MessageType<RemoveImageResponse> = schema.message('RemoveImageResponse');
export const ListMetricDescriptorsRequest: MessageType<ListMetricDescriptorsRequest> = schema.message('ListMetricDescriptorsRequest');
export const ListMetricDescriptorsResponse: MessageType<ListMetricDescriptorsResponse> = schema.message('ListMetricDescriptorsResponse');
export const MetricDescriptor: MessageType<MetricDescriptor> = schema.message('MetricDescriptor');
export const ListPodSandboxMetricsRequest: MessageType<ListPodSandboxMetricsRequest> = schema.message('ListPodSandboxMetricsRequest');
export const ListPodSandboxMetricsResponse: MessageType<ListPodSandboxMetricsResponse> = schema.message('ListPodSandboxMetricsResponse');
export const StreamPodSandboxMetricsRequest: MessageType<StreamPodSandboxMetricsRequest> = schema.message('StreamPodSandboxMetricsRequest');
export const StreamPodSandboxMetricsResponse: MessageType<StreamPodSandboxMetricsResponse> = schema.message('StreamPodSandboxMetricsResponse');
export const PodSandboxMetrics: MessageType<PodSandboxMetrics> = schema.message('PodSandboxMetrics');
export const ContainerMetrics: MessageType<ContainerMetrics> = schema.message('ContainerMetrics');
export const Metric: MessageType<Metric> = schema.message('Metric');
export const VersionRequest: MessageType<VersionRequest> = schema.message('VersionRequest');
export const VersionResponse: MessageType<VersionResponse> = schema.message('VersionResponse');
export const NetworkConfig: MessageType<NetworkConfig> = schema.message('NetworkConfig');
export const RuntimeConfig: MessageType<RuntimeConfig> = schema.message('RuntimeConfig');
export const UpdateRuntimeConfigRequest: MessageType<UpdateRuntimeConfigRequest> = schema.message('UpdateRuntimeConfigRequest');
export const UpdateRuntimeConfigResponse: MessageType<UpdateRuntimeConfigResponse> = schema.message('UpdateRuntimeConfigResponse');
export const RuntimeCondition: MessageType<RuntimeCondition> = schema.message('RuntimeCondition');
export const RuntimeStatus: MessageType<RuntimeStatus> = schema.message('RuntimeStatus');
export const StatusRequest: MessageType<StatusRequest> = schema.message('StatusRequest');
export const RuntimeHandlerFeatures: MessageType<RuntimeHandlerFeatures> = schema.message('RuntimeHandlerFeatures');
export const RuntimeHandler: MessageType<RuntimeHandler> = schema.message('RuntimeHandler');
export const RuntimeFeatures: MessageType<RuntimeFeatures> = schema.message('RuntimeFeatures');
export const StatusResponse: MessageType<StatusResponse> = schema.message('StatusResponse');
export const RuntimeConfigRequest: MessageType<RuntimeConfigRequest> = schema.message('RuntimeConfigRequest');
export const RuntimeConfigResponse: MessageType<RuntimeConfigResponse> = schema.message('RuntimeConfigResponse');
export const LinuxRuntimeConfiguration: MessageType<LinuxRuntimeConfiguration> = schema.message('LinuxRuntimeConfiguration');
export const LinuxContainerResources: MessageType<LinuxContainerResources> = schema.message('LinuxContainerResources');
export const HugepageLimit: MessageType<HugepageLimit> = schema.message('HugepageLimit');
export const WindowsContainerResources: MessageType<WindowsContainerResources> = schema.message('WindowsContainerResources');
export const WindowsCpuGroupAffinity: MessageType<WindowsCpuGroupAffinity> = schema.message('WindowsCpuGroupAffinity');
export const ContainerResources: MessageType<ContainerResources> = schema.message('ContainerResources');
export const UpdateContainerResourcesRequest: MessageType<UpdateContainerResourcesRequest> = schema.message('UpdateContainerResourcesRequest');
export const UpdateContainerResourcesResponse: MessageType<UpdateContainerResourcesResponse> = schema.message('UpdateContainerResourcesResponse');
export const LinuxPodSandboxConfig: MessageType<LinuxPodSandboxConfig> = schema.message('LinuxPodSandboxConfig');
export const PodSandboxConfig: MessageType<PodSandboxConfig> = schema.message('PodSandboxConfig');
export const RunPodSandboxRequest: MessageType<RunPodSandboxRequest> = schema.message('RunPodSandboxRequest');
export const RunPodSandboxResponse: MessageType<RunPodSandboxResponse> = schema.message('RunPodSandboxResponse');
export const StopPodSandboxRequest: MessageType<StopPodSandboxRequest> = schema.message('StopPodSandboxRequest');
export const StopPodSandboxResponse: MessageType<StopPodSandboxResponse> = schema.message('StopPodSandboxResponse');
export const RemovePodSandboxRequest: MessageType<RemovePodSandboxRequest> = schema.message('RemovePodSandboxRequest');
export const RemovePodSandboxResponse: MessageType<RemovePodSandboxResponse> = schema.message('RemovePodSandboxResponse');
export const PodSandboxStatusRequest: MessageType<PodSandboxStatusRequest> = schema.message('PodSandboxStatusRequest');
export const PodSandboxNetworkStatus: MessageType<PodSandboxNetworkStatus> = schema.message('PodSandboxNetworkStatus');
export const LinuxPodSandboxStatus: MessageType<LinuxPodSandboxStatus> = schema.message('LinuxPodSandboxStatus');
export const PodSandboxStatus: MessageType<PodSandboxStatus> = schema.message('PodSandboxStatus');
export const PodSandboxStatusResponse: MessageType<PodSandboxStatusResponse> = schema.message('PodSandboxStatusResponse');
export const PodSandboxStateValue: MessageType<PodSandboxStateValue> = schema.message('PodSandboxStateValue');
export const PodSandboxFilter: MessageType<PodSandboxFilter> = schema.message('PodSandboxFilter');
export const ListPodSandboxRequest: MessageType<ListPodSandboxRequest> = schema.message('ListPodSandboxRequest');
export const PodSandbox: MessageType<PodSandbox> = schema.message('PodSandbox');
export const ListPodSandboxResponse: MessageType<ListPodSandboxResponse> = schema.message('ListPodSandboxResponse');
export const StreamPodSandboxesRequest: MessageType<StreamPodSandboxesRequest> = schema.message('StreamPodSandboxesRequest');
export const StreamPodSandboxesResponse: MessageType<StreamPodSandboxesResponse> = schema.message('StreamPodSandboxesResponse');
export const UpdatePodSandboxResourcesRequest: MessageType<UpdatePodSandboxResourcesRequest> = schema.message('UpdatePodSandboxResourcesRequest');
export const UpdatePodSandboxResourcesResponse: MessageType<UpdatePodSandboxResourcesResponse> = schema.message('UpdatePodSandboxResourcesResponse');
export const UserNamespace: MessageType<UserNamespace> = schema.message('UserNamespace');
export const NamespaceOption: MessageType<NamespaceOption> = schema.message('NamespaceOption');
export const LinuxSandboxSecurityContext: MessageType<LinuxSandboxSecurityContext> = schema.message('LinuxSandboxSecurityContext');
export const SecurityProfile: MessageType<SecurityProfile> = schema.message('SecurityProfile');
export const Namespace: MessageType<Namespace> = schema.message('Namespace');
export const SELinuxOption: MessageType<SELinuxOption> = schema.message('SELinuxOption');
export const Capability: MessageType<Capability> = schema.message('Capability');
export const LinuxContainerSecurityContext: MessageType<LinuxContainerSecurityContext> = schema.message('LinuxContainerSecurityContext');
export const LinuxContainerUser: MessageType<LinuxContainerUser> = schema.message('LinuxContainerUser');
export const ContainerUser: MessageType<ContainerUser> = schema.message('ContainerUser');
export const PodSandboxStatsRequest: MessageType<PodSandboxStatsRequest> = schema.message('PodSandboxStatsRequest');
export const PodSandboxStatsResponse: MessageType<PodSandboxStatsResponse> = schema.message('PodSandboxStatsResponse');
export const PodSandboxStatsFilter: MessageType<PodSandboxStatsFilter> = schema.message('PodSandboxStatsFilter');
export const ListPodSandboxStatsRequest: MessageType<ListPodSandboxStatsRequest> = schema.message('ListPodSandboxStatsRequest');
export const ListPodSandboxStatsResponse: MessageType<ListPodSandboxStatsResponse> = schema.message('ListPodSandboxStatsResponse');
export const StreamPodSandboxStatsRequest: MessageType<StreamPodSandboxStatsRequest> = schema.message('StreamPodSandboxStatsRequest');
export const StreamPodSandboxStatsResponse: MessageType<StreamPodSandboxStatsResponse> = schema.message('StreamPodSandboxStatsResponse');
export const PodSandboxAttributes: MessageType<PodSandboxAttributes> = schema.message('PodSandboxAttributes');
export const PodSandboxStats: MessageType<PodSandboxStats> = schema.message('PodSandboxStats');
export const LinuxPodSandboxStats: MessageType<LinuxPodSandboxStats> = schema.message('LinuxPodSandboxStats');
export const WindowsPodSandboxStats: MessageType<WindowsPodSandboxStats> = schema.message('WindowsPodSandboxStats');
export const NetworkUsage: MessageType<NetworkUsage> = schema.message('NetworkUsage');
export const WindowsNetworkUsage: MessageType<WindowsNetworkUsage> = schema.message('WindowsNetworkUsage');
export const NetworkInterfaceUsage: MessageType<NetworkInterfaceUsage> = schema.message('NetworkInterfaceUsage');
export const WindowsNetworkInterfaceUsage: MessageType<WindowsNetworkInterfaceUsage> = schema.message('WindowsNetworkInterfaceUsage');
export const ProcessUsage: MessageType<ProcessUsage> = schema.message('ProcessUsage');
export const WindowsProcessUsage: MessageType<WindowsProcessUsage> = schema.message('WindowsProcessUsage');
export const ImageFsInfoRequest: MessageType<ImageFsInfoRequest> = schema.message('ImageFsInfoRequest');
export const FilesystemUsage: MessageType<FilesystemUsage> = schema.message('FilesystemUsage');
export const WindowsFilesystemUsage: MessageType<WindowsFilesystemUsage> = schema.message('WindowsFilesystemUsage');
export const ImageFsInfoResponse: MessageType<ImageFsInfoResponse> = schema.message('ImageFsInfoResponse');
export const ContainerStatsRequest: MessageType<ContainerStatsRequest> = schema.message('ContainerStatsRequest');
export const ContainerStatsResponse: MessageType<ContainerStatsResponse> = schema.message('ContainerStatsResponse');
export const ListContainerStatsRequest: MessageType<ListContainerStatsRequest> = schema.message('ListContainerStatsRequest');
export const ContainerStatsFilter: MessageType<ContainerStatsFilter> = schema.message('ContainerStatsFilter');
export const ListContainerStatsResponse: MessageType<ListContainerStatsResponse> = schema.message('ListContainerStatsResponse');
export const StreamContainerStatsRequest: MessageType<StreamContainerStatsRequest> = schema.message('StreamContainerStatsRequest');
export const StreamContainerStatsResponse: MessageType<StreamContainerStatsResponse> = schema.message('StreamContainerStatsResponse');
export const ContainerAttributes: MessageType<ContainerAttributes> = schema.message('ContainerAttributes');
export const ContainerStats: MessageType<ContainerStats> = schema.message('ContainerStats');
export const WindowsContainerStats: MessageType<WindowsContainerStats> = schema.message('WindowsContainerStats');
export const PsiStats: MessageType<PsiStats> = schema.message('PsiStats');
export const PsiData: MessageType<PsiData> = schema.message('PsiData');
export const CpuUsage: MessageType<CpuUsage> = schema.message('CpuUsage');
export const WindowsCpuUsage: MessageType<WindowsCpuUsage> = schema.message('WindowsCpuUsage');
export const MemoryUsage: MessageType<MemoryUsage> = schema.message('MemoryUsage');
export const IoUsage: MessageType<IoUsage> = schema.message('IoUsage');
export const SwapUsage: MessageType<SwapUsage> = schema.message('SwapUsage');
export const WindowsMemoryUsage: MessageType<WindowsMemoryUsage> = schema.message('WindowsMemoryUsage');
export const ExecSyncRequest: MessageType<ExecSyncRequest> = schema.message('ExecSyncRequest');
export const ExecSyncResponse: MessageType<ExecSyncResponse> = schema.message('ExecSyncResponse');
export const ExecRequest: MessageType<ExecRequest> = schema.message('ExecRequest');
export const ExecResponse: MessageType<ExecResponse> = schema.message('ExecResponse');
export const AttachRequest: MessageType<AttachRequest> = schema.message('AttachRequest');
export const AttachResponse: MessageType<AttachResponse> = schema.message('AttachResponse');
export const PortForwardRequest: MessageType<PortForwardRequest> = schema.message('PortForwardRequest');
export const PortForwardResponse: MessageType<PortForwardResponse> = schema.message('PortForwardResponse');
export const DNSConfig: MessageType<DNSConfig> = schema.message('DNSConfig');
export const PortMapping: MessageType<PortMapping> = schema.message('PortMapping');
export const IDMapping: MessageType<IDMapping> = schema.message('IDMapping');
export const Int64Value: MessageType<Int64Value> = schema.message('Int64Value');
export const PodSandboxMetadata: MessageType<PodSandboxMetadata> = schema.message('PodSandboxMetadata');
export const PodIP: MessageType<PodIP> = schema.message('PodIP');
export const ImageSpec: MessageType<ImageSpec> = schema.message('ImageSpec');
export const KeyValue: MessageType<KeyValue> = schema.message('KeyValue');
export const ContainerMetadata: MessageType<ContainerMetadata> = schema.message('ContainerMetadata');
export const UInt64Value: MessageType<UInt64Value> = schema.message('UInt64Value');
export const FilesystemIdentifier: MessageType<FilesystemIdentifier> = schema.message('FilesystemIdentifier');
export const WindowsNamespaceOption: MessageType<WindowsNamespaceOption> = schema.message('WindowsNamespaceOption');
export const WindowsSandboxSecurityContext: MessageType<WindowsSandboxSecurityContext> = schema.message('WindowsSandboxSecurityContext');
export const WindowsPodSandboxConfig: MessageType<WindowsPodSandboxConfig> = schema.message('WindowsPodSandboxConfig');
export const WindowsContainerSecurityContext: MessageType<WindowsContainerSecurityContext> = schema.message('WindowsContainerSecurityContext');
export const WindowsContainerConfig: MessageType<WindowsContainerConfig> = schema.message('WindowsContainerConfig');

export interface RuntimeServiceMethods {
  readonly version: Unary<VersionRequest, VersionResponse>;
  readonly runPodSandbox: Unary<RunPodSandboxRequest, RunPodSandboxResponse>;
  readonly stopPodSandbox: Unary<StopPodSandboxRequest, StopPodSandboxResponse>;
  readonly removePodSandbox: Unary<RemovePodSandboxRequest, RemovePodSandboxResponse>;
  readonly podSandboxStatus: Unary<PodSandboxStatusRequest, PodSandboxStatusResponse>;
  readonly listPodSandbox: Unary<ListPodSandboxRequest, ListPodSandboxResponse>;
  readonly streamPodSandboxes: ServerStream<StreamPodSandboxesRequest, StreamPodSandboxesResponse>;
  readonly createContainer: Unary<CreateContainerRequest, CreateContainerResponse>;
  readonly startContainer: Unary<StartContainerRequest, StartContainerResponse>;
  readonly stopContainer: Unary<StopContainerRequest, StopContainerResponse>;
  readonly removeContainer: Unary<RemoveContainerRequest, RemoveContainerResponse>;
  readonly listContainers: Unary<ListContainersRequest, ListContainersResponse>;
  readonly streamContainers: ServerStream<StreamContainersRequest, StreamContainersResponse>;
  readonly containerStatus: Unary<ContainerStatusRequest, ContainerStatusResponse>;
  readonly updateContainerResources: Unary<UpdateContainerResourcesRequest, UpdateContainerResourcesResponse>;
  readonly reopenContainerLog: Unary<ReopenContainerLogRequest, ReopenContainerLogResponse>;
  readonly execSync: Unary<ExecSyncRequest, ExecSyncResponse>;
  readonly exec: Unary<ExecRequest, ExecResponse>;
  readonly attach: Unary<AttachRequest, AttachResponse>;
  readonly portForward: Unary<PortForwardRequest, PortForwardResponse>;
  readonly containerStats: Unary<ContainerStatsRequest, ContainerStatsResponse>;
  readonly listContainerStats: Unary<ListContainerStatsRequest, ListContainerStatsResponse>;
  readonly streamContainerStats: ServerStream<StreamContainerStatsRequest, StreamContainerStatsResponse>;
  readonly podSandboxStats: Unary<PodSandboxStatsRequest, PodSandboxStatsResponse>;
  readonly listPodSandboxStats: Unary<ListPodSandboxStatsRequest, ListPodSandboxStatsResponse>;
  readonly streamPodSandboxStats: ServerStream<StreamPodSandboxStatsRequest, StreamPodSandboxStatsResponse>;
  readonly updateRuntimeConfig: Unary<UpdateRuntimeConfigRequest, UpdateRuntimeConfigResponse>;
  readonly status: Unary<StatusRequest, StatusResponse>;
  readonly checkpointContainer: Unary<CheckpointContainerRequest, CheckpointContainerResponse>;
  readonly getContainerEvents: ServerStream<GetEventsRequest, ContainerEventResponse>;
  readonly listMetricDescriptors: Unary<ListMetricDescriptorsRequest, ListMetricDescriptorsResponse>;
  readonly listPodSandboxMetrics: Unary<ListPodSandboxMetricsRequest, ListPodSandboxMetricsResponse>;
  readonly streamPodSandboxMetrics: ServerStream<StreamPodSandboxMetricsRequest, StreamPodSandboxMetricsResponse>;
  readonly runtimeConfig: Unary<RuntimeConfigRequest, RuntimeConfigResponse>;
  readonly updatePodSandboxResources: Unary<UpdatePodSandboxResourcesRequest, UpdatePodSandboxResourcesResponse>;
}

export const RuntimeService: ServiceType<RuntimeServiceMethods> = serviceType<RuntimeServiceMethods>('runtime.v1.RuntimeService', {
  version: { name: 'Version', kind: 'unary', request: VersionRequest, response: VersionResponse },
  runPodSandbox: { name: 'RunPodSandbox', kind: 'unary', request: RunPodSandboxRequest, response: RunPodSandboxResponse },
  stopPodSandbox: { name: 'StopPodSandbox', kind: 'unary', request: StopPodSandboxRequest, response: StopPodSandboxResponse },
  removePodSandbox: { name: 'RemovePodSandbox', kind: 'unary', request: RemovePodSandboxRequest, response: RemovePodSandboxResponse },
  podSandboxStatus: { name: 'PodSandboxStatus', kind: 'unary', request: PodSandboxStatusRequest, response: PodSandboxStatusResponse },
  listPodSandbox: { name: 'ListPodSandbox', kind: 'unary', request: ListPodSandboxRequest, response: ListPodSandboxResponse },
  streamPodSandboxes: { name: 'StreamPodSandboxes', kind: 'server-stream', request: StreamPodSandboxesRequest, response: StreamPodSandboxesResponse },
  createContainer: { name: 'CreateContainer', kind: 'unary', request: CreateContainerRequest, response: CreateContainerResponse },
  startContainer: { name: 'StartContainer', kind: 'unary', request: StartContainerRequest, response: StartContainerResponse },
  stopContainer: { name: 'StopContainer', kind: 'unary', request: StopContainerRequest, response: StopContainerResponse },
  removeContainer: { name: 'RemoveContainer', kind: 'unary', request: RemoveContainerRequest, response: RemoveContainerResponse },
  listContainers: { name: 'ListContainers', kind: 'unary', request: ListContainersRequest, response: ListContainersResponse },
  streamContainers: { name: 'StreamContainers', kind: 'server-stream', request: StreamContainersRequest, response: StreamContainersResponse },
  containerStatus: { name: 'ContainerStatus', kind: 'unary', request: ContainerStatusRequest, response: ContainerStatusResponse },
  updateContainerResources: { name: 'UpdateContainerResources', kind: 'unary', request: UpdateContainerResourcesRequest, response: UpdateContainerResourcesResponse },
  reopenContainerLog: { name: 'ReopenContainerLog', kind: 'unary', request: ReopenContainerLogRequest, response: ReopenContainerLogResponse },
  execSync: { name: 'ExecSync', kind: 'unary', request: ExecSyncRequest, response: ExecSyncResponse },
  exec: { name: 'Exec', kind: 'unary', request: ExecRequest, response: ExecResponse },
  attach: { name: 'Attach', kind: 'unary', request: AttachRequest, response: AttachResponse },
  portForward: { name: 'PortForward', kind: 'unary', request: PortForwardRequest, response: PortForwardResponse },
  containerStats: { name: 'ContainerStats', kind: 'unary', request: ContainerStatsRequest, response: ContainerStatsResponse },
  listContainerStats: { name: 'ListContainerStats', kind: 'unary', request: ListContainerStatsRequest, response: ListContainerStatsResponse },
  streamContainerStats: { name: 'StreamContainerStats', kind: 'server-stream', request: StreamContainerStatsRequest, response: StreamContainerStatsResponse },
  podSandboxStats: { name: 'PodSandboxStats', kind: 'unary', request: PodSandboxStatsRequest, response: PodSandboxStatsResponse },
  listPodSandboxStats: { name: 'ListPodSandboxStats', kind: 'unary', request: ListPodSandboxStatsRequest, response: ListPodSandboxStatsResponse },
  streamPodSandboxStats: { name: 'StreamPodSandboxStats', kind: 'server-stream', request: StreamPodSandboxStatsRequest, response: StreamPodSandboxStatsResponse },
  updateRuntimeConfig: { name: 'UpdateRuntimeConfig', kind: 'unary', request: UpdateRuntimeConfigRequest, response: UpdateRuntimeConfigResponse },
  status: { name: 'Status', kind: 'unary', request: StatusRequest, response: StatusResponse },
  checkpointContainer: { name: 'CheckpointContainer', kind: 'unary', request: CheckpointContainerRequest, response: CheckpointContainerResponse },
  getContainerEvents: { name: 'GetContainerEvents', kind: 'server-stream', request: GetEventsRequest, response: ContainerEventResponse },
  listMetricDescriptors: { name: 'ListMetricDescriptors', kind: 'unary', request: ListMetricDescriptorsRequest, response: ListMetricDescriptorsResponse },
  listPodSandboxMetrics: { name: 'ListPodSandboxMetrics', kind: 'unary', request: ListPodSandboxMetricsRequest, response: ListPodSandboxMetricsResponse },
  streamPodSandboxMetrics: { name: 'StreamPodSandboxMetrics', kind: 'server-stream', request: StreamPodSandboxMetricsRequest, response: StreamPodSandboxMetricsResponse },
  runtimeConfig: { name: 'RuntimeConfig', kind: 'unary', request: RuntimeConfigRequest, response: RuntimeConfigResponse },
  updatePodSandboxResources: { name: 'UpdatePodSandboxResources', kind: 'unary', request: UpdatePodSandboxResourcesRequest, response: UpdatePodSandboxResourcesResponse },
});

export interface ImageServiceMethods {
  readonly listImages: Unary<ListImagesRequest, ListImagesResponse>;
  readonly streamImages: ServerStream<StreamImagesRequest, StreamImagesResponse>;
  readonly imageStatus: Unary<ImageStatusRequest, ImageStatusResponse>;
  readonly pullImage: Unary<PullImageRequest, PullImageResponse>;
  readonly removeImage: Unary<RemoveImageRequest, RemoveImageResponse>;
  readonly imageFsInfo: Unary<ImageFsInfoRequest, ImageFsInfoResponse>;
}

export const ImageService: ServiceType<ImageServiceMethods> = serviceType<ImageServiceMethods>('runtime.v1.ImageService', {
  listImages: { name: 'ListImages', kind: 'unary', request: ListImagesRequest, response: ListImagesResponse },
  streamImages: { name: 'StreamImages', kind: 'server-stream', request: StreamImagesRequest, response: StreamImagesResponse },
  imageStatus: { name: 'ImageStatus', kind: 'unary', request: ImageStatusRequest, response: ImageStatusResponse },
  pullImage: { name: 'PullImage', kind: 'unary', request: PullImageRequest, response: PullImageResponse },
  removeImage: { name: 'RemoveImage', kind: 'unary', request: RemoveImageRequest, response: RemoveImageResponse },
  imageFsInfo: { name: 'ImageFsInfo', kind: 'unary', request: ImageFsInfoRequest, response: ImageFsInfoResponse },
});
