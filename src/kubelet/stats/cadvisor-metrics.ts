import { join } from 'node:path';
import {
  type CgroupHost,
  type CgroupLayout,
  type Clock,
  cgroupPids,
  type SampledFamily,
} from '../../lib/index.ts';
import type { Pod, RuntimePod } from '../../pods/index.ts';
import { cgroupMeasures, interfacesIn, type Measure } from '../../resources/index.ts';

/** What the metrics of cgroups are found by; each is a look that changes nothing. */
export interface CadvisorSources {
  readonly clock: Clock;
  readonly host: CgroupHost;
  readonly layout: CgroupLayout;
  readonly running: (signal: AbortSignal) => Promise<readonly RuntimePod[]>;
  readonly pods: () => readonly Pod[];
  /** The path of a pod's cgroup below each tree; empty for none. */
  readonly cgroupOf: (pod: Pod) => string;
  /** Cgroups beside those of pods. */
  readonly otherCgroups: readonly string[];
  /** What a process has open; it may be gone. */
  readonly openFiles: (pid: number) => Promise<OpenFiles>;
  /** How much each container has written, by its id, and how much there is room for. */
  readonly written: (signal: AbortSignal) => Promise<Written>;
  readonly machine: { readonly cores: number; readonly memoryBytes: number; readonly kernel: string };
}

export interface OpenFiles {
  readonly all: number;
  readonly sockets: number;
}

export interface Written {
  readonly bytes: ReadonlyMap<string, number>;
  readonly capacityBytes: number | undefined;
}

/** Of whom a cgroup is; what is not known of it is blank. */
interface Row {
  readonly path: string;
  readonly container: string;
  readonly image: string;
  readonly name: string;
  readonly namespace: string;
  readonly pod: string;
  readonly startMs: number | undefined;
}

/** The metrics that monitoring has always found under `/metrics/cadvisor`, of every cgroup there is now. */
export async function cadvisorMetrics(
  sources: CadvisorSources,
  signal: AbortSignal,
): Promise<readonly SampledFamily[]> {
  const rows = await findRows(sources, signal);
  const deviceName = devicesIn(await sources.host.read('/proc/partitions').catch(() => ''));
  const written = await sources.written(signal);
  const families = new Map<
    string,
    { labels: Readonly<Record<string, string>>; value: number | undefined; timestampMs: number }[]
  >();
  const timestampMs = sources.clock.now();
  // One after the other: files of cgroups are read at once, and all of them together would hold up everything else.
  for (const row of rows) {
    const measures = [...(await measuresOf(row, deviceName, sources)), ...layerOf(row, written)];
    for (const { name, labels = {}, value } of measures) {
      const samples = families.get(name) ?? [];
      samples.push({ labels: { ...identityOf(row), ...labels }, value, timestampMs });
      families.set(name, samples);
    }
  }
  return [
    ...[...families].map(([name, samples]) => familyOf(`container_${name}`, samples)),
    ...machineFamilies(sources),
    scrapeError(0),
  ];
}

/** Whether the look failed. */
export function scrapeError(value: 0 | 1): SampledFamily {
  return familyOf('container_scrape_error', [{ labels: {}, value }]);
}

function identityOf({ path, container, image, name, namespace, pod }: Row) {
  return { container, id: path, image, name, namespace, pod };
}

type Samples = Iterable<{
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number | undefined;
}>;

function familyOf(name: string, samples: Samples): SampledFamily {
  const type = name.endsWith('_total') ? 'counter' : 'gauge';
  const words = name.replace(/^container_/, '').replaceAll('_', ' ');
  return { name, type, help: `What the kernel tells of a cgroup: ${words}.`, samples };
}

function machineFamilies({ machine }: CadvisorSources): readonly SampledFamily[] {
  const { cores, memoryBytes, kernel } = machine;
  const gauge = (name: string, help: string, value: number, labels = {}): SampledFamily => ({
    name,
    type: 'gauge',
    help,
    samples: [{ labels, value }],
  });
  const versions = {
    kernelVersion: kernel,
    osVersion: '',
    dockerVersion: '',
    cadvisorVersion: '',
    cadvisorRevision: '',
  };
  return [
    gauge('machine_cpu_cores', 'How many processors the machine has.', cores),
    gauge('machine_memory_bytes', 'How much memory the machine has.', memoryBytes),
    gauge('cadvisor_version_info', 'What the machine runs on; always 1.', 1, versions),
  ];
}

async function findRows(sources: CadvisorSources, signal: AbortSignal): Promise<readonly Row[]> {
  const known = new Map<string, Pod>(sources.pods().map((pod) => [pod.metadata.uid, pod]));
  const blank = { container: '', image: '', name: '', namespace: '', pod: '', startMs: undefined };
  const pods = (await sources.running(signal)).flatMap((running) => {
    const pod = known.get(running.uid);
    const path = pod === undefined ? '' : sources.cgroupOf(pod);
    return path === '' ? [] : [rowsOf(running, path, sources)];
  });
  return [...sources.otherCgroups.map((path) => ({ ...blank, path })), ...(await Promise.all(pods)).flat()];
}

/** The runtime names the cgroup of a container after its id, alone or with words of its own around it. */
async function rowsOf(
  { name: pod, namespace, sandboxes, containers }: RuntimePod,
  path: string,
  { layout, host }: CadvisorSources,
): Promise<readonly Row[]> {
  const names = await host.subdirectories(join(treeOf(layout), path)).catch(() => []);
  const row = (id: string, container: string, image: string, createdAtNs: bigint): readonly Row[] => {
    const found = names.find((each) => each.includes(id));
    const startMs = Number(createdAtNs / 1_000_000n);
    return found === undefined
      ? []
      : [{ path: join(path, found), container, image, name: id, namespace, pod, startMs }];
  };
  return [
    { path, container: '', image: '', name: '', namespace, pod, startMs: undefined },
    ...sandboxes.flatMap(({ id, createdAtNs }) => row(id, 'POD', '', createdAtNs)),
    ...containers.flatMap(({ id, name, image, createdAtNs }) => row(id, name, image, createdAtNs)),
  ];
}

function treeOf(layout: CgroupLayout): string {
  return layout.version === 2 ? layout.root : (layout.controllers.get('memory') ?? '');
}

async function measuresOf(
  row: Row,
  deviceName: (id: string) => string,
  sources: CadvisorSources,
): Promise<readonly Measure[]> {
  const { layout, host, clock } = sources;
  const own = await cgroupMeasures(layout, row.path, host, deviceName);
  const times = [
    { name: 'last_seen', value: Math.floor(clock.now() / 1_000) },
    {
      name: 'start_time_seconds',
      value: row.startMs === undefined ? undefined : Math.floor(row.startMs / 1_000),
    },
  ];
  if (row.container === '') return [...own, ...times];
  const pids = (await cgroupPids(host, [join(treeOf(layout), row.path)])).filter((pid) => pid > 0);
  const network = row.container === 'POD' ? await networkOf(pids[0], host) : [];
  return [...own, ...times, ...(await processesOf(pids, sources)), ...network];
}

async function processesOf(
  pids: readonly number[],
  { host, openFiles }: CadvisorSources,
): Promise<readonly Measure[]> {
  const open = await Promise.all(pids.map((pid) => openFiles(pid)));
  const limits = await host.read(`/proc/${pids[0] ?? 0}/limits`).catch(() => '');
  const most = /^Max open files\s+(\d+)/m.exec(limits)?.[1];
  return [
    { name: 'processes', value: pids.length },
    { name: 'file_descriptors', value: open.reduce((sum, { all }) => sum + all, 0) },
    { name: 'sockets', value: open.reduce((sum, { sockets }) => sum + sockets, 0) },
    {
      name: 'ulimits_soft',
      labels: { ulimit: 'max_open_files' },
      value: most === undefined ? undefined : Number(most),
    },
  ];
}

/** Where it lies is the runtime's own business, so that the device is blank. */
function layerOf({ name }: Row, { bytes, capacityBytes }: Written): readonly Measure[] {
  const used = bytes.get(name);
  if (used === undefined) return [];
  const labels = { device: '' };
  return [
    { name: 'fs_usage_bytes', labels, value: used },
    { name: 'fs_limit_bytes', labels, value: capacityBytes },
  ];
}

async function networkOf(pid: number | undefined, host: CgroupHost): Promise<readonly Measure[]> {
  if (pid === undefined) return [];
  const text = await host.read(`/proc/${pid}/net/dev`).catch(() => '');
  return interfacesIn(text).flatMap((each) =>
    (
      [
        ['receive_bytes', each.rxBytes],
        ['receive_packets', each.rxPackets],
        ['receive_packets_dropped', each.rxDropped],
        ['receive_errors', each.rxErrors],
        ['transmit_bytes', each.txBytes],
        ['transmit_packets', each.txPackets],
        ['transmit_packets_dropped', each.txDropped],
        ['transmit_errors', each.txErrors],
      ] as const
    ).map(([what, value]) => ({ name: `network_${what}_total`, labels: { interface: each.name }, value })),
  );
}

/** From the text of /proc/partitions. */
function devicesIn(text: string): (id: string) => string {
  const rows = [...text.matchAll(/^\s*(\d+)\s+(\d+)\s+\d+\s+(\S+)$/gm)];
  const names = new Map(rows.map(([, major, minor, name]) => [`${major}:${minor}`, `/dev/${name}`]));
  return (id) => names.get(id) ?? '';
}
