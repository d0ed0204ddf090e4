import { readdir, readFile } from 'node:fs/promises';
import { availableParallelism, hostname, networkInterfaces, totalmem } from 'node:os';
import type { LoadedConfig } from '../config/index.ts';
import type { KubeletSettings, NodeMachine } from '../kubelet/index.ts';
import { detectCgroupLayout, realCgroupHost } from '../lib/index.ts';
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
  const memoryBytes = totalmem();
  const layout = await detectCgroupLayout(realCgroupHost());
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
    capacity: { milliCpu: availableParallelism() * 1_000, memoryBytes },
    node: {
      cgroups: layout.version === 2 ? 'v2' : 'v1',
      memoryCapacity: BigInt(memoryBytes),
      swapCapacity: 0n,
      swapController: 'absent',
      swapBehavior: 'NoSwap',
      hugePageSizes: layout.version === 1 && !layout.controllers.has('hugetlb') ? [] : await hugePageSizes(),
      cpuQuota: config.cpuCFSQuota ? 'enforced' : 'off',
      cpuPeriodUs: BigInt(Math.round(config.cpuCFSQuotaPeriodMs * 1_000)),
      oomKills: config.singleProcessOOMKill === true ? 'process' : 'container',
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

const pageKinds = /^hugepages-(\d+)kB$/;

/** As the cgroup files name them: 2MB, 1GB. */
async function hugePageSizes(): Promise<readonly string[]> {
  const names = await readdir('/sys/kernel/mm/hugepages').catch(() => []);
  return names.flatMap((name) => {
    const kb = Number(pageKinds.exec(name)?.[1] ?? 0);
    if (kb === 0) return [];
    if (kb >= 1 << 20) return [`${kb >> 20}GB`];
    return [kb >= 1 << 10 ? `${kb >> 10}MB` : `${kb}KB`];
  });
}
