import { readdir, readFile } from 'node:fs/promises';
import { availableParallelism, hostname, networkInterfaces, release, totalmem } from 'node:os';
import type { LoadedConfig } from '../config/index.ts';
import {
  type CgroupDriverDeps,
  type KubeletSettings,
  type NodeMachine,
  runtimeCgroupDriver,
} from '../kubelet/index.ts';
import { detectCgroupLayout, realCgroupHost } from '../lib/index.ts';
import { checkMachine, OwnOomScore, readMachineFacts, reservedAmount } from '../resources/index.ts';
import { realRuntimeFiles } from '../runtime/index.ts';
import { hostManifestFiles, httpGet } from '../sources/index.ts';

/** The machine kubeling runs on. */
export function realMachine(): NodeMachine {
  return {
    manifests: hostManifestFiles(),
    httpGet,
    files: realRuntimeFiles(),
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
    thermalThrottlePaths: await thermalThrottlePaths(),
    kernel: {
      sysctls: { kernelRelease: release(), allowedUnsafe: config.allowedUnsafeSysctls },
      appArmor: await appArmor(),
    },
    podPidsLimit: config.podPidsLimit,
    clusterDns: config.clusterDNS,
    clusterDomain: config.clusterDomain,
    resolvConf: config.resolvConf,
    seccompFallback: config.seccompDefault ? 'RuntimeDefault' : 'Unconfined',
    maxPods: config.maxPods,
    maxRestartWaitMs: config.crashLoopBackOff.maxContainerRestartPeriodMs ?? 300_000,
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

/** Once the runtime can be asked: the settings as they have to be with it, and our own process as configured. */
export async function settleWithRuntime(
  settings: KubeletSettings,
  { config }: LoadedConfig,
  deps: CgroupDriverDeps,
  signal: AbortSignal,
): Promise<KubeletSettings> {
  await new OwnOomScore({ score: config.oomScoreAdj, logger: deps.logger }).apply();
  return { ...settings, cgroupDriver: await runtimeCgroupDriver(settings.cgroupDriver, deps, signal) };
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
