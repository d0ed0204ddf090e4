import { join } from 'node:path';
import type { CgroupHost, CgroupLayout } from '../../lib/index.ts';
import { weightToShares } from '../cgroup-math.ts';
import { fieldsOf } from './text-fields.ts';

/** One number about a cgroup, under the name monitoring knows it by, without the prefix all of them have. */
export interface Measure {
  readonly name: string;
  readonly labels?: Readonly<Record<string, string>> | undefined;
  /** What the kernel does not tell is left out. */
  readonly value: number | undefined;
}

type Files = (controller: string, name: string) => Promise<string>;

/** How often the kernel counts a second of CPU time where it counts in ticks. */
const ticks = 100;
const noLimit = 2 ** 62;

/** All that a cgroup's own files tell of it. Devices are named by `deviceName`, from such as `8:0`. */
export async function cgroupMeasures(
  layout: CgroupLayout,
  path: string,
  host: Pick<CgroupHost, 'read'>,
  deviceName: (id: string) => string,
): Promise<readonly Measure[]> {
  const files: Files = async (controller, name) => {
    const root = layout.version === 2 ? layout.root : layout.controllers.get(controller);
    return root === undefined ? '' : await host.read(join(root, path, name)).catch(() => '');
  };
  const parts =
    layout.version === 2
      ? [unifiedCpu, unifiedMemory, unifiedDisk, pressure]
      : [splitCpu, splitMemory, splitDisk];
  const all = await Promise.all([...parts, processes].map((part) => part(files, deviceName)));
  return all.flat().filter(({ value }) => value !== undefined);
}

async function splitCpu(file: Files): Promise<readonly Measure[]> {
  const names = [
    'cpuacct.usage',
    'cpuacct.stat',
    'cpu.stat',
    'cpu.cfs_period_us',
    'cpu.cfs_quota_us',
    'cpu.shares',
  ];
  const texts = await Promise.all(
    names.map((name) => file(name.startsWith('cpuacct') ? 'cpuacct' : 'cpu', name)),
  );
  const [usage, stat, throttling, period, quota, shares] = texts;
  const counted = fieldsOf(stat);
  const throttled = fieldsOf(throttling);
  return [
    { name: 'cpu_usage_seconds_total', labels: { cpu: 'total' }, value: scaled(numberOf(usage), 1e9) },
    { name: 'cpu_user_seconds_total', value: scaled(counted.get('user'), ticks) },
    { name: 'cpu_system_seconds_total', value: scaled(counted.get('system'), ticks) },
    { name: 'cpu_cfs_periods_total', value: throttled.get('nr_periods') },
    { name: 'cpu_cfs_throttled_periods_total', value: throttled.get('nr_throttled') },
    { name: 'cpu_cfs_throttled_seconds_total', value: scaled(throttled.get('throttled_time'), 1e9) },
    { name: 'spec_cpu_period', value: numberOf(period) },
    { name: 'spec_cpu_quota', value: quotaOf(numberOf(quota)) },
    { name: 'spec_cpu_shares', value: numberOf(shares) },
  ];
}

async function unifiedCpu(file: Files): Promise<readonly Measure[]> {
  const [stat, max, weight] = await Promise.all(
    ['cpu.stat', 'cpu.max', 'cpu.weight'].map((name) => file('cpu', name)),
  );
  const counted = fieldsOf(stat);
  const [quota, period] = (max ?? '').trim().split(' ');
  return [
    {
      name: 'cpu_usage_seconds_total',
      labels: { cpu: 'total' },
      value: scaled(counted.get('usage_usec'), 1e6),
    },
    { name: 'cpu_user_seconds_total', value: scaled(counted.get('user_usec'), 1e6) },
    { name: 'cpu_system_seconds_total', value: scaled(counted.get('system_usec'), 1e6) },
    { name: 'cpu_cfs_periods_total', value: counted.get('nr_periods') },
    { name: 'cpu_cfs_throttled_periods_total', value: counted.get('nr_throttled') },
    { name: 'cpu_cfs_throttled_seconds_total', value: scaled(counted.get('throttled_usec'), 1e6) },
    { name: 'spec_cpu_period', value: numberOf(period) },
    { name: 'spec_cpu_quota', value: numberOf(quota) },
    { name: 'spec_cpu_shares', value: weight?.trim() ? weightToShares(Number(weight)) : undefined },
  ];
}

async function splitMemory(file: Files): Promise<readonly Measure[]> {
  const of = async (name: string) => numberOf(await file('memory', `memory.${name}`));
  const counted = fieldsOf(await file('memory', 'memory.stat'));
  const usage = await of('usage_in_bytes');
  return [
    ...memory({
      usage,
      inactive: counted.get('total_inactive_file'),
      cache: counted.get('total_cache'),
      rss: counted.get('total_rss'),
      swap: counted.get('total_swap'),
      mapped: counted.get('total_mapped_file'),
      peak: await of('max_usage_in_bytes'),
      failures: await of('failcnt'),
      oomKills: fieldsOf(await file('memory', 'memory.oom_control')).get('oom_kill'),
      limit: await of('limit_in_bytes'),
      swapLimit: await of('memsw.limit_in_bytes'),
      reservation: await of('soft_limit_in_bytes'),
    }),
    ...faults('container', counted.get('pgfault'), counted.get('pgmajfault')),
    ...faults('hierarchy', counted.get('total_pgfault'), counted.get('total_pgmajfault')),
  ];
}

async function unifiedMemory(file: Files): Promise<readonly Measure[]> {
  const of = async (name: string) => numberOf(await file('memory', `memory.${name}`));
  const counted = fieldsOf(await file('memory', 'memory.stat'));
  const events = fieldsOf(await file('memory', 'memory.events'));
  const [pgfault, pgmajfault] = [counted.get('pgfault'), counted.get('pgmajfault')];
  const [anon, files] = [counted.get('anon'), counted.get('file')];
  // The root has no file of its own for it.
  const whole = anon === undefined || files === undefined ? undefined : anon + files;
  return [
    ...memory({
      usage: (await of('current')) ?? whole,
      inactive: counted.get('inactive_file'),
      cache: files,
      rss: anon,
      swap: await of('swap.current'),
      mapped: counted.get('file_mapped'),
      peak: await of('peak'),
      failures: events.get('max'),
      oomKills: events.get('oom_kill'),
      limit: await of('max'),
      swapLimit: await of('swap.max'),
      reservation: await of('min'),
    }),
    ...faults('container', pgfault, pgmajfault),
    ...faults('hierarchy', pgfault, pgmajfault),
  ];
}

type MemoryParts = Readonly<
  Record<
    | 'usage'
    | 'inactive'
    | 'cache'
    | 'rss'
    | 'swap'
    | 'mapped'
    | 'peak'
    | 'failures'
    | 'oomKills'
    | 'limit'
    | 'swapLimit'
    | 'reservation',
    number | undefined
  >
>;

function memory(parts: MemoryParts): readonly Measure[] {
  const { usage, inactive = 0 } = parts;
  return [
    { name: 'memory_cache', value: parts.cache },
    { name: 'memory_rss', value: parts.rss },
    { name: 'memory_swap', value: parts.swap },
    { name: 'memory_mapped_file', value: parts.mapped },
    { name: 'memory_usage_bytes', value: usage },
    { name: 'memory_max_usage_bytes', value: parts.peak },
    {
      name: 'memory_working_set_bytes',
      value: usage === undefined ? undefined : Math.max(usage - inactive, 0),
    },
    { name: 'memory_failcnt', value: parts.failures },
    { name: 'oom_events_total', value: parts.oomKills },
    { name: 'spec_memory_limit_bytes', value: limitOf(parts.limit) },
    { name: 'spec_memory_swap_limit_bytes', value: limitOf(parts.swapLimit) },
    { name: 'spec_memory_reservation_limit_bytes', value: limitOf(parts.reservation) },
  ];
}

function faults(scope: string, minor: number | undefined, major: number | undefined): readonly Measure[] {
  const name = 'memory_failures_total';
  return [
    { name, labels: { failure_type: 'pgfault', scope }, value: minor },
    { name, labels: { failure_type: 'pgmajfault', scope }, value: major },
  ];
}

async function splitDisk(file: Files, deviceName: (id: string) => string): Promise<readonly Measure[]> {
  const [bytes, times] = await Promise.all(
    ['io_service_bytes', 'io_serviced'].map((name) => file('blkio', `blkio.throttle.${name}`)),
  );
  const rows = (text = '') => [...text.matchAll(/^(\d+:\d+) (Read|Write) (\d+)$/gm)];
  return [
    ...rows(bytes).flatMap(([, id = '', way = '', value]) =>
      moved(id, way, 'bytes', Number(value), deviceName),
    ),
    ...rows(times).flatMap(([, id = '', way = '', value]) =>
      moved(id, way, 'times', Number(value), deviceName),
    ),
  ];
}

async function unifiedDisk(file: Files, deviceName: (id: string) => string): Promise<readonly Measure[]> {
  const lines = (await file('io', 'io.stat')).split('\n').map((line) => line.split(' '));
  return lines.flatMap(([id = '', ...words]) => {
    const values = new Map(words.map((word) => word.split('=', 2) as [string, string]));
    return (
      [
        ['rbytes', 'Read', 'bytes'],
        ['wbytes', 'Write', 'bytes'],
        ['rios', 'Read', 'times'],
        ['wios', 'Write', 'times'],
      ] as const
    ).flatMap(([key, way, unit]) => {
      const value = numberOf(values.get(key));
      return value === undefined ? [] : moved(id, way, unit, value, deviceName);
    });
  });
}

function moved(
  id: string,
  way: string,
  unit: 'bytes' | 'times',
  value: number,
  deviceName: (id: string) => string,
): readonly Measure[] {
  const [major = '', minor = ''] = id.split(':');
  const device = deviceName(id);
  const what = way === 'Read' ? 'reads' : 'writes';
  if (unit === 'times') return [{ name: `fs_${what}_total`, labels: { device }, value }];
  return [
    { name: `fs_${what}_bytes_total`, labels: { device }, value },
    { name: 'blkio_device_usage_total', labels: { device, major, minor, operation: way }, value },
  ];
}

/** Where nobody has read or written anything the kernel says nothing at all. */
export function nothingMoved(id: string, deviceName: (id: string) => string): readonly Measure[] {
  return (['bytes', 'times'] as const).flatMap((unit) =>
    ['Read', 'Write'].flatMap((way) => moved(id, way, unit, 0, deviceName)),
  );
}

async function pressure(file: Files): Promise<readonly Measure[]> {
  const all = ['cpu', 'memory', 'io'].map(async (what) => {
    const text = await file(what, `${what}.pressure`);
    const total = (kind: string) =>
      scaled(numberOf(new RegExp(`^${kind} .*total=(\\d+)`, 'm').exec(text)?.[1]), 1e6);
    return [
      { name: `pressure_${what}_waiting_seconds_total`, value: total('some') },
      { name: `pressure_${what}_stalled_seconds_total`, value: total('full') },
    ];
  });
  return (await Promise.all(all)).flat();
}

async function processes(file: Files): Promise<readonly Measure[]> {
  const [current, max] = await Promise.all(['pids.current', 'pids.max'].map((name) => file('pids', name)));
  const limit = max?.trim() === 'max' ? 0 : numberOf(max);
  return [
    { name: 'threads', value: numberOf(current) },
    { name: 'threads_max', value: limit },
  ];
}

function numberOf(text = ''): number | undefined {
  const word = text.trim();
  return /^-?\d+$/.test(word) ? Number(word) : undefined;
}

function scaled(value: number | undefined, by: number): number | undefined {
  return value === undefined ? undefined : value / by;
}

/** No limit is told as 0. */
function limitOf(value: number | undefined): number {
  return value === undefined || value > noLimit ? 0 : value;
}

/** Of what is not held to one the quota is not told. */
function quotaOf(value: number | undefined): number | undefined {
  return value === undefined || value < 0 ? undefined : value;
}
