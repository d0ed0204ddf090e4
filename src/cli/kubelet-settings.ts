import { access, constants, readdir, readFile, stat } from 'node:fs/promises';
import { availableParallelism, hostname, networkInterfaces, release, totalmem } from 'node:os';
import { Fingerprint, hostFiles, type LoadedConfig, readCredentialPlugins } from '../config/index.ts';
import {
  type CgroupDriverDeps,
  type CredentialHost,
  type KubeletSettings,
  type NodeMachine,
  runtimeCgroupDriver,
} from '../kubelet/index.ts';
import {
  type Clock,
  detectCgroupLayout,
  dialHttp,
  hostSilentMounts,
  mountCalls,
  readFileIfExists,
  realCgroupHost,
  realClock,
  systemRandom,
} from '../lib/index.ts';
import { hostPluginHost } from '../plugins/index.ts';
import { checkMachine, OwnOomScore, readMachineFacts, reservedAmount } from '../resources/index.ts';
import {
  idsOfBlock,
  processPlugins,
  realRuntimeFiles,
  realVolumeParts,
  type VerificationPolicy,
} from '../runtime/index.ts';
import { hostManifestFiles, httpGet } from '../sources/index.ts';
import {
  HostBlockDevices,
  HostDirectoryQuotas,
  HostDisks,
  HostNetworkMounts,
  HostVolumeFiles,
  type SelinuxFacts,
} from '../volumes/index.ts';
import { readSelinuxFacts } from './selinux-facts.ts';
import { realSwapMachine, swappedVolumes } from './swapped-volumes.ts';
import { ownedUserIds, realUserIdMachine } from './user-ids.ts';

/** The machine kubeling runs on. */
export function realMachine(): NodeMachine {
  const silent = hostSilentMounts(realClock(), systemRandom());
  return {
    manifests: hostManifestFiles(),
    httpGet,
    dialHttp,
    files: realRuntimeFiles(silent),
    volumeParts: realVolumeParts(realClock(), silent),
    volumeFiles: new HostVolumeFiles(realClock(), mountCalls(), silent),
    blockDevices: new HostBlockDevices(realClock()),
    disks: new HostDisks(realClock()),
    directoryQuotas: new HostDirectoryQuotas({ clock: realClock() }),
    networkMounts: new HostNetworkMounts({ clock: realClock(), mounted: () => silent.renew() }),
    plugins: hostPluginHost(realClock(), systemRandom()),
    cgroups: realCgroupHost(),
    readFile: (path) => readFile(path, 'utf8'),
  };
}

/** Brings the configuration together with what this machine is. */
export async function kubeletSettings({ config, flags, gates }: LoadedConfig): Promise<KubeletSettings> {
  const layout = await detectCgroupLayout(realCgroupHost());
  const facts = await readMachineFacts({ read: (path) => readFile(path, 'utf8'), list: readdir }, layout);
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
  const memoryBytes = totalmem();
  const capacity = {
    milliCpu: availableParallelism() * 1_000,
    memoryBytes,
    pids: facts.pids,
    hugePages: facts.hugePages,
  };
  const enabledGates = new Set<string>(gates.list().flatMap(({ name, enabled }) => (enabled ? [name] : [])));
  return {
    nodeName: flags.hostnameOverride || hostname().toLowerCase(),
    nodeIps: flags.nodeIps.length > 0 ? flags.nodeIps : ownAddresses(),
    rootDir: flags.rootDir,
    podLogsDir: config.podLogsDir,
    logLinksDir: '/var/log/containers',
    staticPodPath: config.staticPodPath,
    staticPodUrl: config.staticPodURL,
    staticPodUrlHeader: config.staticPodURLHeader,
    fileCheckMs: config.fileCheckFrequencyMs,
    httpCheckMs: config.httpCheckFrequencyMs,
    syncFrequencyMs: config.syncFrequencyMs,
    volumeStatsMs: config.volumeStatsAggPeriodMs,
    cgroupRoot: config.cgroupRoot || '/',
    cgroupDriver: config.cgroupDriver === 'systemd' ? 'systemd' : 'cgroupfs',
    cgroupsPerQos: config.cgroupsPerQOS,
    capacity,
    reserved: reservedAmount(config, capacity),
    node: {
      cgroups: layout.version === 2 ? 'v2' : 'v1',
      memoryCapacity: BigInt(memoryBytes),
      swapCapacity: facts.swapBytes,
      swapController: facts.swapController,
      swapBehavior: config.memorySwap.swapBehavior === 'LimitedSwap' ? 'LimitedSwap' : 'NoSwap',
      hugePageSizes:
        layout.version === 1 && !layout.controllers.has('hugetlb') ? [] : [...facts.hugePages.keys()],
      cpuQuota: config.cpuCFSQuota ? 'enforced' : 'off',
      cpuPeriodUs: BigInt(Math.round(config.cpuCFSQuotaPeriodMs * 1_000)),
      oomKills: config.singleProcessOOMKill === true ? 'process' : 'container',
    },
    selinux: await selinuxFacts(gates),
    attaching: config.enableControllerAttachDetach ? 'cluster' : 'node',
    thermalThrottlePaths: await thermalThrottlePaths(),
    kernel: {
      sysctls: { kernelRelease: release(), allowedUnsafe: config.allowedUnsafeSysctls },
      appArmor: await appArmor(),
    },
    idsPerPod: config.userNamespaces?.idsPerPod,
    podPidsLimit: config.podPidsLimit,
    clusterDns: config.clusterDNS,
    clusterDomain: config.clusterDomain,
    resolvConf: config.resolvConf,
    seccompFallback: config.seccompDefault ? 'RuntimeDefault' : 'Unconfined',
    maxPods: config.maxPods,
    hookLimitMs: flags.hookTimeoutMs,
    emptyDirQuota: flags.emptyDirQuota ? 'enforced' : 'off',
    deadVolumes: flags.detachDeadVolumes ? 'detach' : 'keep',
    exclusive: {
      cpu: config.cpuManagerPolicy === 'static',
      memory: config.memoryManagerPolicy === 'Static',
    },
    maxRestartWaitMs: config.crashLoopBackOff.maxContainerRestartPeriodMs ?? 300_000,
    images: {
      verification: verificationPolicy(config),
      plugins: await credentialPlugins({ flags, gates }),
    },
    pulls: {
      maxParallel: config.serializeImagePulls ? 1 : config.maxParallelImagePulls,
      qps: config.registryPullQPS,
      burst: config.registryBurst,
    },
    gc: {
      minAgeMs: flags.minimumContainerTtlMs,
      maxPerContainer: flags.maxDeadContainersPerContainer,
      maxContainers: flags.maxDeadContainers,
    },
    isGateEnabled: (gate) => enabledGates.has(gate),
  };
}

function verificationPolicy({
  imagePullCredentialsVerificationPolicy: kind,
  preloadedImagesVerificationAllowlist: allowlist,
}: LoadedConfig['config']): VerificationPolicy | undefined {
  // Empty where the feature gate is off.
  if (kind === '') return undefined;
  return kind === 'NeverVerifyAllowlistedImages' ? { kind, allowlist } : { kind };
}

async function selinuxFacts(gates: LoadedConfig['gates']): Promise<SelinuxFacts | undefined> {
  const found = await readSelinuxFacts(readFileIfExists);
  return found && { ...found, labelled: gates.enabled('SELinuxMount') ? 'all' : 'one-pod' };
}

/** Mistakes in their configuration end the start: without its credentials the node could not do its work. */
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

/** The credentials for images that this machine and its user have. */
export function credentialHost(clock: Clock): CredentialHost {
  const { HOME: homeDir } = process.env;
  return {
    readFile: readFileIfExists,
    workingDir: process.cwd(),
    homeDir,
    runPlugin: processPlugins(clock, process.env),
  };
}

/** Once the runtime can be asked: the settings as they have to be with it, and our own process as configured. */
export async function settleWithRuntime(
  settings: KubeletSettings,
  { config }: LoadedConfig,
  deps: CgroupDriverDeps,
  signal: AbortSignal,
): Promise<KubeletSettings> {
  await new OwnOomScore({ score: config.oomScoreAdj, logger: deps.logger }).apply();
  const { idsPerPod = idsOfBlock, maxPods } = settings;
  return {
    ...settings,
    userIds: await ownedUserIds(realUserIdMachine(deps.clock, signal), { idsPerPod, maxPods }),
    startEvents:
      settings.node.swapCapacity > 0n ? await swappedVolumes(realSwapMachine(deps.clock), signal) : [],
    cgroupDriver: await runtimeCgroupDriver(settings.cgroupDriver, deps, signal),
  };
}

/** The addresses others reach this machine by, IPv4 first. */
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

/** What tells of the machine's heat, one directory a CPU; only those that are there. */
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

/** As the kernel tells; where it does not know of AppArmor at all there is no such file. */
async function appArmor(): Promise<'enabled' | 'disabled'> {
  const said = await readFile('/sys/module/apparmor/parameters/enabled', 'utf8').catch(() => 'N');
  return said.startsWith('Y') ? 'enabled' : 'disabled';
}
