import { posix } from 'node:path';
import { codeOnly, type Import, importsOf } from './source-text.ts';

/**
 * The source files to which the import rules are applied, by path relative to the root of the
 * repository. The rules use this map instead of the disk, so that each can be shown to fail on a
 * small example.
 */
export type Sources = ReadonlyMap<string, string>;

/**
 * The ranks of the packages: a package may import those of lower rank. Every package must be
 * listed, so that a new one gets its rank deliberately.
 */
const ranks: Readonly<Record<string, number>> = {
  main: 5,
  cli: 4,
  kubelet: 3,
  certificates: 2,
  checkpoints: 2,
  config: 2,
  containerd: 2,
  node: 2,
  objects: 2,
  pleg: 2,
  plugins: 2,
  probes: 2,
  resources: 2,
  runtime: 2,
  server: 2,
  sources: 2,
  stats: 2,
  status: 2,
  ui: 2,
  volumes: 2,
  workers: 2,
  journal: 1.5,
  'local-api': 1.5,
  api: 1,
  cri: 1,
  pods: 1,
  kinds: 0.5,
  protocols: 0.25,
  lib: 0,
};

/**
 * Pairs of packages of the same rank, with the reason: the first package may import the second one
 * at run time. Ideally empty.
 */
const peersAllowed: ReadonlyMap<string, string> = new Map<string, string>([
  ['checkpoints -> volumes', 'the format of a bound volume is checked where it is defined'],
]);

/** Entry points of packages besides their index, with the reason. */
const extraDoors: ReadonlyMap<string, string> = new Map([
  ['src/kubelet/cluster/index.ts', 'only a cluster node should load the code for the cluster'],
  ['src/resources/exclusive/index.ts', 'only a node with exclusive resources should load their allocation'],
  ['src/resources/devices/index.ts', 'only a node with device plugins should load the device manager'],
  ['src/resources/pod-resources/index.ts', 'only a node with PodResources clients should load that API'],
  [
    'src/resources/systemd/index.ts',
    'only a node with the systemd cgroup driver should load its D-Bus client',
  ],
  ['src/sources/api-source.ts', 'only a cluster node should load the API client'],
  ['src/status/mirror/index.ts', 'only a cluster node should load the API client'],
  ['src/status/writer/index.ts', 'only a cluster node should load the API client'],
  ['src/pods/defaults/index.ts', 'only sources of unvalidated pods should load it'],
  ['src/pods/validation/index.ts', 'only sources of unvalidated pods should load it'],
  ['src/stats/statistics.ts', 'loads the rest of the package when usage is first requested'],
  ['src/node/shutdown/index.ts', 'only a node with graceful shutdown should load it'],
  ['src/server/remote/index.ts', 'only a node that serves the kubelet API should load TLS and authorization'],
]);

/**
 * Each protocol has a separate entry point, so that importing one protocol does not load the
 * others.
 */
const protocolDoor = /^src\/protocols\/[^/]+\/index\.ts$/;

/**
 * Uses of time, randomness and timers that are allowed in `lib` only; other packages use its clock
 * and random source.
 */
const forbiddenWords: readonly (readonly [string, RegExp])[] = [
  ['Date.now', /\bDate\.now\b/],
  ['new Date()', /\bnew Date\s*(?:\(\s*\)|(?![\s(\w]))/],
  ['Math.random', /\bMath\.random\b/],
  // Methods named setTimeout, such as that of sockets, are allowed.
  ['setTimeout', /(?<!\.)\bsetTimeout\b(?!\s*\??:)|\bglobalThis\.setTimeout\b/],
  ['setInterval', /(?<!\.)\bsetInterval\b|\bglobalThis\.setInterval\b/],
  ['performance.now', /\bperformance\.now\b/],
  ['process.hrtime', /\bprocess\.hrtime\b/],
  ['AbortSignal.timeout', /\bAbortSignal\.timeout\b/],
];

/**
 * Reports imports of node:http, which load parts that kubeling never uses; `nodeHttp` of `lib` does
 * not load them.
 */
function dearImport(path: string, imports: readonly Import[]): string[] {
  return imports.some(({ from, typeOnly }) => from === 'node:http' && !typeOnly)
    ? [`${path} imports node:http, but nodeHttp of lib is the way to it`]
    : [];
}

interface Edge {
  readonly from: string;
  readonly to: string;
  readonly typeOnly: boolean;
}

/**
 * Returns one sentence for each violation of the import rules; none if the sources comply. Tests
 * may import any file.
 */
export function breaches(sources: Sources): string[] {
  const files = [...sources.keys()].filter((path) => path.startsWith('src/') && !path.endsWith('.test.ts'));
  const edges = files.flatMap((path) => edgesOf(path, importsOf(sources.get(path) ?? '')));
  return [
    ...files.flatMap(unknownRoom),
    ...edges.flatMap((edge) => [...leavingSource(edge), ...wrongDirection(edge), ...wrongDoor(edge)]),
    ...cycles(files, edges),
    ...files.flatMap((path) => dearImport(path, importsOf(sources.get(path) ?? ''))),
    ...files.flatMap((path) => forbiddenUse(path, sources.get(path) ?? '')),
  ];
}

function edgesOf(path: string, imports: readonly Import[]): Edge[] {
  return imports
    .filter(({ from }) => from.startsWith('.'))
    .map(({ from, typeOnly }) => ({ from: path, to: posix.join(posix.dirname(path), from), typeOnly }));
}

/**
 * Returns the package of a file. `src/main.ts` counts as a separate package of the highest rank.
 */
function roomOf(path: string): string {
  return path.replace(/^src\//, '').replace(/[/.].*$/, '');
}

function unknownRoom(path: string): string[] {
  const room = roomOf(path);
  return room in ranks ? [] : [`${path} is in the room "${room}", which has no rank: give it one`];
}

function leavingSource({ from, to }: Edge): string[] {
  return /^(?:test|bench|scripts)\//.test(to)
    ? [`${from} imports ${to}, which is not part of the program`]
    : [];
}

function wrongDirection({ from, to, typeOnly }: Edge): string[] {
  const [room, other] = [roomOf(from), roomOf(to)];
  const [rank, otherRank] = [ranks[room], ranks[other]];
  if (!to.startsWith('src/') || room === other || rank === undefined || otherRank === undefined) return [];
  if (otherRank > rank) return [`${from} imports ${to}, but ${room} is below ${other}`];
  const allowed = typeOnly || otherRank < rank || peersAllowed.has(`${room} -> ${other}`);
  return allowed
    ? []
    : [`${from} imports ${to}, but ${room} and ${other} are of one rank: only types may cross`];
}

function wrongDoor({ from, to }: Edge): string[] {
  const room = roomOf(to);
  if (!to.startsWith('src/') || roomOf(from) === room || room === 'main') return [];
  if (to === `src/${room}/index.ts` || extraDoors.has(to) || protocolDoor.test(to)) return [];
  return [`${from} imports ${to}, but a room is entered through its index.ts`];
}

function forbiddenUse(path: string, source: string): string[] {
  if (roomOf(path) === 'lib' || path.includes('/gen/')) return [];
  const code = codeOnly(source);
  const words = forbiddenWords.filter(([, pattern]) => pattern.test(code)).map(([word]) => word);
  if (importsOf(source).some(({ from }) => /^(?:node:)?timers(?:\/|$)/.test(from))) words.push('node:timers');
  return words.map((word) => `${path} uses ${word}, which belongs in lib only`);
}

/**
 * Returns one sentence for each import cycle, found by following the imports that exist at run
 * time.
 */
function cycles(files: readonly string[], edges: readonly Edge[]): string[] {
  const next = Map.groupBy(
    edges.filter((edge) => !edge.typeOnly),
    (edge) => edge.from,
  );
  const done = new Set<string>();
  const path: string[] = [];
  const found: string[] = [];
  const visit = (file: string) => {
    const start = path.indexOf(file);
    if (start >= 0) found.push(`${[...path.slice(start), file].join(' -> ')} is a circle`);
    if (start >= 0 || done.has(file)) return;
    path.push(file);
    for (const edge of next.get(file) ?? []) visit(edge.to);
    path.pop();
    done.add(file);
  };
  files.forEach(visit);
  return found;
}
