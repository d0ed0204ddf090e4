import { access, constants, readdir, readFile, stat, statfs } from 'node:fs/promises';
import { availableParallelism, hostname, networkInterfaces, release, totalmem } from 'node:os';
import {
  type EvictionThreshold,
  evictionThresholds,
  Fingerprint,
  hostFiles,
  type LoadedConfig,
  readCredentialPlugins,
} from '../../config/index.ts';
import type { NodeEvent } from '../../journal/index.ts';
import type { KubeletSettings, NodeMachine } from '../../kubelet/index.ts';
import {
  type CgroupLayout,
  type Clock,
  detectCgroupLayout,
  hostUnresponsiveMounts,
  mountSyscalls,
  parseQuantity,
  quantityValue,
  readFileIfExists,
  readTrustedFile,
  realCgroupHost,
  realClock,
  sendHttp,
  systemRandom,
} from '../../lib/index.ts';
import { goArchitecture } from '../../node/index.ts';
import { hostPluginHost } from '../../plugins/index.ts';
import {
  type CgroupDriverDeps,
  checkMachine,
  checkReservations,
  hostDeviceHost,
  hostKernelLog,
  hostProcesses,
  type MachineFacts,
  type MachineFiles,
  maxPods,
  OwnOomScore,
  type PidLimits,
  readMachineFacts,
  readPidLimits,
  reservedAmount,
  reservedCgroups,
  runtimeCgroupDriver,
  type SliceManager,
  watchMemory,
  withheldAmount,
} from '../../resources/index.ts';
import {
  type CredentialHost,
  containerLogLinks,
  type DiskSpace,
  hostSubPaths,
  idsPerBlock,
  processPlugins,
  realRotationFiles,
  realRuntimeFiles,
  type VerificationPolicy,
} from '../../runtime/index.ts';
import { hostManifestFiles, httpGet } from '../../sources/index.ts';
import {
  HostBlockDevices,
  HostDirectoryQuotas,
  HostDisks,
  HostNetworkMounts,
  HostVolumeFiles,
  type SelinuxFacts,
} from '../../volumes/index.ts';
import { exclusiveResourceSettings } from './exclusive-resource-settings.ts';
import { hostStatsMachine } from './host-stats-machine.ts';
import { foreignIdRanges, ownedUserIds, realUserIdMachine } from './user-ids.ts';
import { hostSwapProbe, readSelinuxFacts, swapWarnings } from './volume-support.ts';

/** Returns the socket path of a runtime endpoint. */
export function socketOf(endpoint: string): string {
  return endpoint.replace(/^unix:\/\//, '');
}

/** Access to the machine on which the kubelet runs. */
export function realMachine(): NodeMachine {
  const unresponsive = hostUnresponsiveMounts(realClock(), systemRandom());
  return {
    manifests: hostManifestFiles(),
    httpGet,
    dialHttp: sendHttp,
    files: realRuntimeFiles(unresponsive),
    foreignIds: () => foreignIdRanges(),
    volumeParts: hostSubPaths(realClock(), unresponsive),
    logFiles: realRotationFiles(),
    diskSpace: realDiskSpace,
    volumeFiles: new HostVolumeFiles(realClock(), mountSyscalls(), unresponsive),
    blockDevices: new HostBlockDevices(realClock()),
    disks: new HostDisks(realClock()),
    directoryQuotas: new HostDirectoryQuotas({ clock: realClock() }),
    networkMounts: new HostNetworkMounts({ clock: realClock(), mounted: () => unresponsive.renew() }),
    plugins: hostPluginHost(realClock(), systemRandom()),
    devices: hostDeviceHost(realClock(), systemRandom()),
    cgroups: realCgroupHost(),
    openSlices,
    processes: hostProcesses(),
    kernelLog: hostKernelLog(),
    shutdowns: shutdownSource(),
    stats: hostStatsMachine(realClock(), unresponsive),
    watchMemory,
    readFile: (path) => readFile(path, 'utf8'),
  };
}

/**
 * Opens systemd-logind as the source of shutdown notifications, if it exists; loads its modules on
 * demand.
 */
function shutdownSource(): NonNullable<NodeMachine['shutdowns']> {
  return {
    async open(delayMs, signal) {
      const { logindShutdowns } = await import('../../node/shutdown/index.ts');
      return await logindShutdowns({ clock: realClock(), busPath: systemBusPath() }).open(delayMs, signal);
    },
  };
}

async function openSlices(): Promise<SliceManager> {
  const { systemdSlices } = await import('../../resources/systemd/index.ts');
  return systemdSlices({ clock: realClock(), busPath: systemBusPath() });
}

function systemBusPath(): string {
  const { DBUS_SYSTEM_BUS_ADDRESS: address = '' } = process.env;
  return /^unix:path=([^,;]+)/.exec(address)?.[1] ?? '/run/dbus/system_bus_socket';
}

const factFiles: MachineFiles = { read: (path) => readFile(path, 'utf8'), list: readdir };

/** Returns the default PID limits for a kubelet started by `kubeling up`. */
export async function ownPidLimits(): Promise<PidLimits | undefined> {
  return await readPidLimits(factFiles, await detectCgroupLayout(realCgroupHost()));
}

/** Combines the configuration with facts of this machine. */
export async function kubeletSettings({ config, flags, gates }: LoadedConfig): Promise<KubeletSettings> {
  const machine = await checkedMachine({ config, flags });
  const { capacity, layout } = machine;
  const enabledGates = new Set<string>(gates.list().flatMap(({ name, enabled }) => (enabled ? [name] : [])));
  return {
    nodeName: flags.hostnameOverride || hostname().toLowerCase(),
    nodeIps: flags.nodeIps.length > 0 ? flags.nodeIps : ownAddresses(),
    nodeLabels: { 'kubernetes.io/arch': goArchitecture(process.arch), ...flags.nodeLabels },
    rootDir: flags.rootDir,
    podLogsDir: config.podLogsDir,
    logLinksDir: containerLogLinks,
    ...staticPodSettings(config),
    syncFrequencyMs: config.syncFrequencyMs,
    volumeStatsMs: config.volumeStatsAggPeriodMs,
    runtimeSocket: socketOf(config.containerRuntimeEndpoint),
    ...cgroupSettings({ config, flags }, layout),
    capacity,
    reserved: reservedAmount(config),
    withheld: withheldAmount(config, capacity, hardThreshold(config, 'memory.available')),
    maxPods: maxPods(config, capacity.milliCpu),
    node: linuxNode(config, machine),
    exclusiveResources: exclusiveResourceSettings({ config, gates }, capacity.memoryBytes),
    exclusive: {
      cpu: config.cpuManagerPolicy === 'static',
      memory: config.memoryManagerPolicy === 'Static',
    },
    selinux: await selinuxFacts(gates),
    thermalThrottlePaths: await thermalThrottlePaths(),
    kernel: {
      sysctls: { kernelRelease: release(), allowedUnsafe: config.allowedUnsafeSysctls },
      appArmor: await appArmor(),
    },
    shutdownGroups: await groupsOfShutdown(config),
    ...podSettings(config, flags),
    images: {
      verification: verificationPolicy(config),
      plugins: await credentialPlugins({ flags, gates }),
    },
    ...imageSettings(config),
    containerLogs: containerLogPolicy(config),
    eviction: evictionSettings(config, flags),
    gc: containerGcPolicy(flags),
    isGateEnabled: (gate) => enabledGates.has(gate),
  };
}

interface MachineState {
  readonly layout: CgroupLayout;
  readonly facts: MachineFacts;
  readonly capacity: KubeletSettings['capacity'];
}

/** Reads the facts of this machine; throws if the configuration does not allow or fit it. */
async function checkedMachine({
  config,
  flags,
}: Pick<LoadedConfig, 'config' | 'flags'>): Promise<MachineState> {
  const layout = await detectCgroupLayout(realCgroupHost());
  const facts = await readMachineFacts(factFiles, layout);
  checkMachine(
    {
      failSwapOn: config.failSwapOn,
      failCgroupV1: config.failCgroupV1,
      swapBehavior: config.memorySwap.swapBehavior,
      singleProcessOomKill: config.singleProcessOOMKill,
    },
    facts,
    layout.version,
  );
  const capacity = {
    milliCpu: availableParallelism() * 1_000,
    memoryBytes: totalmem(),
    pids: facts.pids,
    hugePages: facts.hugePages,
  };
  const free = {
    memory: hardThreshold(config, 'memory.available'),
    disk: hardThreshold(config, 'nodefs.available'),
  };
  checkReservations(config, { ...capacity, diskBytes: await sharedDiskBytes({ config, flags }) }, free);
  return { layout, facts, capacity };
}

function staticPodSettings(config: LoadedConfig['config']) {
  return {
    staticPodPath: config.staticPodPath,
    staticPodUrl: config.staticPodURL,
    staticPodUrlHeader: config.staticPodURLHeader,
    fileCheckMs: config.fileCheckFrequencyMs,
    httpCheckMs: config.httpCheckFrequencyMs,
  } satisfies Partial<KubeletSettings>;
}

function cgroupSettings(
  { config, flags }: Pick<LoadedConfig, 'config' | 'flags'>,
  { version }: CgroupLayout,
) {
  return {
    systemCgroups: {
      kubelet: config.kubeletCgroups || undefined,
      runtime: flags.runtimeCgroups || undefined,
      misc: config.systemCgroups || undefined,
    },
    cgroupRoot: config.cgroupRoot || '/',
    cgroupDriver: config.cgroupDriver === 'systemd' ? 'systemd' : 'cgroupfs',
    cgroupsPerQos: config.cgroupsPerQOS,
    kubepodsWeight: flags.kubepodsWeight === 'capacity' ? 'capacity' : `proportional-v${version}`,
    reservedCgroups: reservedCgroups(config),
  } satisfies Partial<KubeletSettings>;
}

/** What this node offers to the containers of its pods. */
function linuxNode(
  config: LoadedConfig['config'],
  { layout, facts, capacity }: MachineState,
): KubeletSettings['node'] {
  return {
    cgroups: layout.version === 2 ? 'v2' : 'v1',
    memoryCapacity: BigInt(capacity.memoryBytes),
    swapCapacity: facts.swapBytes,
    swapController: facts.swapController,
    swapBehavior: config.memorySwap.swapBehavior === 'LimitedSwap' ? 'LimitedSwap' : 'NoSwap',
    hugePageSizes:
      layout.version === 1 && !layout.controllers.has('hugetlb') ? [] : [...facts.hugePages.keys()],
    cpuQuota: config.cpuCFSQuota ? 'enforced' : 'off',
    cpuPeriodUs: BigInt(Math.round(config.cpuCFSQuotaPeriodMs * 1_000)),
    oomKills: config.singleProcessOOMKill === true ? 'process' : 'container',
  };
}

/** The settings that apply to each pod. */
function podSettings(config: LoadedConfig['config'], flags: LoadedConfig['flags']) {
  return {
    idsPerPod: config.userNamespaces?.idsPerPod,
    podPidsLimit: config.podPidsLimit,
    clusterDns: config.clusterDNS,
    clusterDomain: config.clusterDomain,
    resolvConf: config.resolvConf,
    seccompFallback: config.seccompDefault ? 'RuntimeDefault' : 'Unconfined',
    hookLimitMs: flags.hookTimeoutMs,
    maxRestartWaitMs: config.crashLoopBackOff.maxContainerRestartPeriodMs ?? 300_000,
    attaching: config.enableControllerAttachDetach ? 'cluster' : 'node',
    emptyDirQuota: flags.emptyDirQuota ? 'enforced' : 'off',
    deadVolumes: flags.detachDeadVolumes ? 'detach' : 'keep',
  } satisfies Partial<KubeletSettings>;
}

function imageSettings(config: LoadedConfig['config']) {
  return {
    pulls: {
      maxParallel: config.serializeImagePulls ? 1 : config.maxParallelImagePulls,
      qps: config.registryPullQPS,
      burst: config.registryBurst,
    },
    imageGc: {
      highPercent: config.imageGCHighThresholdPercent,
      lowPercent: config.imageGCLowThresholdPercent,
      minAgeMs: config.imageMinimumGCAgeMs,
      maxAgeMs: config.imageMaximumGCAgeMs,
    },
  } satisfies Partial<KubeletSettings>;
}

function evictionSettings(
  config: LoadedConfig['config'],
  flags: LoadedConfig['flags'],
): KubeletSettings['eviction'] {
  return {
    thresholds: evictionThresholds(config),
    transitionMs: config.evictionPressureTransitionPeriodMs,
    maxPodGraceSeconds: config.evictionMaxPodGracePeriod,
    localStorage: config.localStorageCapacityIsolation ? 'limited' : 'unlimited',
    memoryGuard: flags.evictionMemoryGuard ? 'on' : 'off',
    memoryNotification: config.kernelMemcgNotification ? 'kernel' : undefined,
  };
}

function containerGcPolicy(flags: LoadedConfig['flags']): KubeletSettings['gc'] {
  return {
    minAgeMs: flags.minimumContainerTtlMs,
    maxPerContainer: flags.maxDeadContainersPerContainer,
    maxContainers: flags.maxDeadContainers,
  };
}

/** Loads the graceful shutdown code only if the configuration enables it. */
async function groupsOfShutdown(config: LoadedConfig['config']) {
  const isEnabled = config.shutdownGracePeriodMs > 0 || config.shutdownGracePeriodByPodPriority.length > 0;
  if (!isEnabled) return undefined;
  const { shutdownGroups } = await import('../../node/shutdown/index.ts');
  return shutdownGroups(config);
}

function hardThreshold(config: LoadedConfig['config'], evictionSignal: EvictionThreshold['signal']) {
  const isMeant = ({ kind, signal }: EvictionThreshold) => kind === 'hard' && signal === evictionSignal;
  return evictionThresholds(config).find(isMeant)?.value;
}

function verificationPolicy({
  imagePullCredentialsVerificationPolicy: kind,
  preloadedImagesVerificationAllowlist: allowlist,
}: LoadedConfig['config']): VerificationPolicy | undefined {
  // The verification policy of image credentials is empty when its feature gate is disabled.
  if (kind === '') return undefined;
  return kind === 'NeverVerifyAllowlistedImages' ? { kind, allowlist } : { kind };
}

async function realDiskSpace(path: string): Promise<DiskSpace> {
  const { blocks, bavail, bsize } = await statfs(path);
  return { capacityBytes: blocks * bsize, availableBytes: bavail * bsize };
}

/**
 * Returns the reserved bytes of the disk that pods share; undefined if they are unknown or disk
 * usage is not limited.
 */
async function sharedDiskBytes({
  config,
  flags,
}: Pick<LoadedConfig, 'config' | 'flags'>): Promise<number | undefined> {
  if (!config.localStorageCapacityIsolation) return undefined;
  return await realDiskSpace(flags.rootDir).then(
    ({ capacityBytes }) => capacityBytes,
    () => undefined,
  );
}

/**
 * Returns the log rotation policy; undefined if rotation is disabled, because a maximum size of
 * zero would rotate without end.
 */
function containerLogPolicy(config: LoadedConfig['config']): KubeletSettings['containerLogs'] {
  const maxBytes = Number(quantityValue(parseQuantity(config.containerLogMaxSize)));
  if (maxBytes <= 0) return undefined;
  return {
    maxBytes,
    maxFiles: config.containerLogMaxFiles,
    workers: config.containerLogMaxWorkers,
    intervalMs: config.containerLogMonitorIntervalMs,
  };
}

async function selinuxFacts(gates: LoadedConfig['gates']): Promise<SelinuxFacts | undefined> {
  const found = await readSelinuxFacts(readFileIfExists);
  return found && { ...found, labelled: gates.enabled('SELinuxMount') ? 'all' : 'one-pod' };
}

/**
 * Loads the credential provider plugins. Errors in their configuration fail the start of the
 * kubelet, because image pulls would fail without them.
 */
export async function credentialPlugins({ flags, gates }: Pick<LoadedConfig, 'flags' | 'gates'>) {
  const { imageCredentialProviderConfig: configPath, imageCredentialProviderBinDir: binDir } = flags;
  if (configPath === '') return undefined;
  const isOn = gates.enabled('KubeletServiceAccountTokenForCredentialProviders');
  const fingerprint = new Fingerprint(hostFiles());
  const source = {
    configPath,
    binDir,
    files: fingerprint.files,
    serviceAccountTokens: isOn ? ('allowed' as const) : ('gated-off' as const),
    isExecutable: (path: string) =>
      access(path, constants.X_OK).then(
        () => isFile(path),
        () => false,
      ),
  };
  const specs = await readCredentialPlugins(source, new AbortController().signal);
  return { binDir, specs, fingerprint: fingerprint.text };
}

async function isFile(path: string): Promise<boolean> {
  return (await stat(path)).isFile();
}

const maxDockerConfigBytes = 1 << 20;

/** Provides image credentials from the files of this machine and the user of the process. */
export function credentialHost(clock: Clock, workingDir: string | undefined): CredentialHost {
  const { HOME: homeDirectory } = process.env;
  return {
    readFile: (path) => readTrustedFile(path, maxDockerConfigBytes),
    workingDir,
    homeDir: homeDirectory,
    runPlugin: processPlugins(clock, process.env),
  };
}

/**
 * Applies the OOM score to this process, and returns the settings with the cgroup driver of the
 * running runtime, the user IDs for pods, and the events of the start.
 */
export async function applyRuntimeVersion(
  settings: KubeletSettings,
  { config }: LoadedConfig,
  deps: CgroupDriverDeps,
  signal: AbortSignal,
): Promise<KubeletSettings> {
  await new OwnOomScore({ score: config.oomScoreAdj, logger: deps.logger }).apply();
  const { idsPerPod = idsPerBlock, maxPods } = settings;
  return {
    ...settings,
    userIds: await ownedUserIds(realUserIdMachine(deps.clock, signal), { idsPerPod, maxPods }),
    startEvents: [
      ...cgroupEvents(settings.node.cgroups),
      ...(settings.node.swapCapacity > 0n ? await swapWarnings(hostSwapProbe(deps.clock), signal) : []),
    ],
    cgroupDriver: await runtimeCgroupDriver(settings.cgroupDriver, deps, signal),
  };
}

/** Returns the events about the cgroup version: a warning for v1. */
export function cgroupEvents(version: 'v1' | 'v2'): readonly NodeEvent[] {
  if (version === 'v2') return [];
  const message =
    'This machine has cgroups v1: kubeling supports it, but without limited swap, an OOM kills one process instead of the whole container, and other kubelets reject it. Boot with cgroups v2';
  return [{ type: 'Warning', reason: 'CgroupV1', message }];
}

/** Returns the IP addresses of this machine, IPv4 first. */
function ownAddresses(): readonly string[] {
  const all = Object.entries(networkInterfaces())
    .filter(([name]) => !/^(klg|veth|docker|cni)/.test(name))
    .flatMap(([, addresses]) => addresses ?? [])
    .filter(({ internal, address }) => !internal && !address.startsWith('fe80'));
  const sorted = [
    ...all.filter(({ family }) => family === 'IPv4'),
    ...all.filter(({ family }) => family === 'IPv6'),
  ];
  return sorted.length === 0 ? ['127.0.0.1'] : sorted.map(({ address }) => address);
}

const cpusDir = '/sys/devices/system/cpu';

/** Returns the existing directories with thermal throttle counters, one per CPU. */
async function thermalThrottlePaths(): Promise<readonly string[]> {
  const cpus = (await readdir(cpusDir).catch(() => [])).filter((name) => /^cpu\d+$/.test(name));
  const paths = cpus.map((name) => `${cpusDir}/${name}/thermal_throttle`);
  const there = await Promise.all(
    paths.map((path) =>
      readdir(path).then(
        () => true,
        () => false,
      ),
    ),
  );
  return paths.filter((_, index) => there[index] === true);
}

/**
 * Whether AppArmor is enabled, from the kernel's parameter file, which does not exist if the kernel
 * lacks AppArmor.
 */
async function appArmor(): Promise<'enabled' | 'disabled'> {
  const enabled = await readFile('/sys/module/apparmor/parameters/enabled', 'utf8').catch(() => 'N');
  return enabled.startsWith('Y') ? 'enabled' : 'disabled';
}
