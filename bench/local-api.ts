/**
 * Measures the embedded API under load, over HTTPS and with every write synced to the disk: the
 * latency of lists and writes with many objects and many watches, its resource usage, and how the
 * server treats a watcher that does not read. The server and the watchers each run in a separate
 * process; CPU and memory are those of the server. Prints the targets next to the results; asserts
 * nothing.
 *
 *     npm run bench:local-api [-- --objects 10000] [--watchers 200] [--writes 2000] [--dir PATH]
 *     [--profile DIR]
 */
import { mkdtemp, open, rm } from 'node:fs/promises';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { timed } from './compare.ts';
import { percentile, print } from './figures.ts';
import { type Asked, openWatch, ServerUnderTest, Watchers } from './local-api-client.ts';

const { values } = parseArgs({
  options: {
    objects: { type: 'string', default: '10000' },
    watchers: { type: 'string', default: '200' },
    writes: { type: 'string', default: '2000' },
    dir: { type: 'string' },
    profile: { type: 'string' },
  },
});
const objects = Number(values.objects);
const watchers = Number(values.watchers);
const writes = Number(values.writes);

const pods = '/api/v1/namespaces/default/pods';
const json = 'application/json';
const table = 'application/json;as=Table;v=v1;g=meta.k8s.io';
const partial = 'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io';
/**
 * The number of writes that fill the kernel's socket buffers on both ends of a watch that is not
 * read.
 */
const unreadWrites = 6_000;

function pod(index: number): object {
  const name = `pod-${index}`;
  const labels = { app: `app-${index % 50}`, 'pod-template-hash': '5d4f8c7b9', tier: 'front' };
  const env = Array.from({ length: 12 }, (_, each) => ({ name: `SETTING_${each}`, value: `value ${each}` }));
  const probe = { httpGet: { path: '/healthz', port: 8_080 }, periodSeconds: 5 };
  const resources = { requests: { cpu: '100m', memory: '64Mi' }, limits: { cpu: '1', memory: '256Mi' } };
  const probes = { livenessProbe: probe, readinessProbe: probe };
  const main = { name: 'main', image: 'registry.example/app:1.2.3', env, resources, ...probes };
  const annotations = { 'example/checksum': 'a'.repeat(64) };
  const spec = { nodeName: 'elsewhere', containers: [main, { name: 'beside', image: 'beside:1' }] };
  return { apiVersion: 'v1', kind: 'Pod', metadata: { name, labels, annotations }, spec };
}

/** A status patch such as a kubelet sends. */
function statusPatch(index: number, round: number): Asked {
  const ready = { type: 'Ready', status: round % 2 === 0 ? 'True' : 'False', reason: `Round${round}` };
  const status = { phase: 'Running', podIP: '10.0.0.7', message: `${round}-${index}`, conditions: [ready] };
  return { method: 'PATCH', path: `${pods}/pod-${index % objects}/status`, body: { status } };
}

async function inTurns(
  count: number,
  atOnce: number,
  each: (index: number) => Promise<unknown>,
): Promise<number[]> {
  const took: number[] = [];
  const worker = async (own: number) => {
    for (let index = own; index < count; index += atOnce) took.push((await timed(() => each(index))).ms);
  };
  await Promise.all(Array.from({ length: atOnce }, (_, own) => worker(own)));
  return took;
}

const at = (took: readonly number[], share: number) => `${percentile(took, share).toFixed(1)} ms`;
const mb = (bytes: number) => `${(bytes / 2 ** 20).toFixed(1)} MB`;
const whole = (figure: number) => figure.toFixed(0);
const judged = (figure: number, most: number) =>
  `(target under ${most} ms: ${figure < most ? 'met' : 'MISSED'})`;

/** The latency of a write and fsync without the API: the lower bound for every API write. */
async function bareSync(): Promise<void> {
  const directory = await mkdtemp(join(values.dir ?? tmpdir(), 'bench-sync-'));
  try {
    await using file = await open(join(directory, 'file'), 'w');
    const bytes = Buffer.alloc(4_096, 1);
    const took = await inTurns(500, 1, async (index) => {
      await file.write(bytes, 0, bytes.length, index * bytes.length);
      await file.datasync();
    });
    print('4 KB written and synced, bare', `p50 ${at(took, 0.5)}, p99 ${at(took, 0.99)}`);
  } finally {
    await rm(directory, { recursive: true });
  }
}

async function fill(server: ServerUnderTest): Promise<void> {
  const { ms } = await timed(() =>
    inTurns(objects, 16, (index) => server.must({ method: 'POST', path: pods, body: pod(index) })),
  );
  const { cpuMs, residentMb } = await server.figures('collected');
  const each = `${(cpuMs / objects).toFixed(2)} ms of CPU each`;
  print(`${objects} pods made, 16 at once`, `${whole(ms)} ms, ${each}, ${whole(residentMb)} MB resident`);
}

async function list(server: ServerUnderTest, what: string, path: string, accept: string): Promise<void> {
  const count = 10;
  await server.figures();
  let bytes = 0;
  const took = await inTurns(count, 1, async () => {
    ({ bytes } = await server.must({ method: 'GET', path, headers: { accept } }));
  });
  const { cpuMs, residentMb, loopHeldMs } = await server.figures();
  const spent = `CPU ${whole(cpuMs / count)} ms, loop held ${whole(loopHeldMs)} ms, ${whole(residentMb)} MB resident`;
  const goal = judged(percentile(took, 0.5), 300);
  print(`list, ${what}, ${mb(bytes)}`, `p50 ${at(took, 0.5)}, most ${at(took, 1)}, ${spent} ${goal}`);
}

async function version(server: ServerUnderTest): Promise<string> {
  const { text } = await server.must({ method: 'GET', path: `${pods}?limit=1` });
  return (JSON.parse(text()) as { readonly metadata: { readonly resourceVersion: string } }).metadata
    .resourceVersion;
}

/**
 * Opens watches as nodes, controllers and users do: seven of ten receive complete objects, one a
 * table, one only metadata, and one follows a single pod.
 */
async function openWatchers(server: ServerUnderTest): Promise<Watchers> {
  const path = `${pods}?watch=true&resourceVersion=${await version(server)}`;
  const forms = [json, json, json, json, json, json, json, table, partial];
  const wished = Array.from({ length: watchers }, (_, index) => {
    const accept = forms[index % 10];
    return accept === undefined
      ? { path: `${path}&fieldSelector=metadata.name%3Dpod-${index}`, accept: json }
      : { path, accept };
  });
  return await Watchers.open(server.way, wished);
}

async function until(isSo: () => Promise<boolean>): Promise<void> {
  while (!(await isSo())) await new Promise((resolve) => setTimeout(resolve, 5));
}

async function write(server: ServerUnderTest, among: Watchers, atOnce: number, round: number): Promise<void> {
  const before = await among.lines();
  await server.figures();
  const { ms, value: took } = await timed(() =>
    inTurns(writes, atOnce, (index) => server.must(statusPatch(index * 7, round))),
  );
  const late = await timed(() => until(async () => isSeen(before, await among.lines())));
  const { cpuMs, loopHeldMs } = await server.figures();
  const spent = `${whole((writes * 1_000) / ms)}/s, CPU ${(cpuMs / writes).toFixed(2)} ms each, loop held ${whole(loopHeldMs)} ms`;
  const goal = judged(percentile(took, 0.99), 20);
  print(
    `write, ${before.length} watch, ${atOnce} at once`,
    `p50 ${at(took, 0.5)}, p99 ${at(took, 0.99)}, ${spent} ${goal}`,
  );
  if (before.length > 0)
    print('  the last watcher has seen the last', `${whole(late.ms)} ms after its answer`);
}

function isSeen(before: readonly number[], now: readonly number[]): boolean {
  return now.every((lines, index) => index % 10 === 9 || lines >= (before[index] ?? 0) + writes);
}

/** Opens a watch and reads nothing of it, while all other watches are read. */
async function unread(server: ServerUnderTest, others: number): Promise<void> {
  const before = await server.figures('collected');
  const path = `${pods}?watch=true&resourceVersion=${await version(server)}`;
  const slow = await openWatch(server.way, { path, accept: json });
  slow.pause();
  let most = 0;
  const took: number[] = [];
  for (let round = 100; took.length < unreadWrites; round++) {
    took.push(...(await inTurns(500, 1, (index) => server.must(statusPatch(index * 7, round)))));
    most = Math.max(most, (await server.figures()).mostWaiting);
  }
  const end = await timed(() => until(async () => (await server.figures()).watches === others));
  slow.resume();
  const after = await server.figures('collected');
  print(
    `a watcher that does not read, over ${unreadWrites} writes`,
    `${mb(most)} wait for it in the process at most; heap ${(after.heapMb - before.heapMb).toFixed(1)} MB more, with what is remembered of the writes`,
  );
  const goal = judged(percentile(took, 0.99), 20);
  print('  writes beside it, 1 at once', `p50 ${at(took, 0.5)}, p99 ${at(took, 0.99)} ${goal}`);
  print(
    '  the server lets it go',
    `${(end.ms / 1_000).toFixed(1)} s after the last write; to its client the watch is ${await slow.ended}, after ${slow.lines()} lines`,
  );
}

const load = () =>
  loadavg()
    .map((each) => each.toFixed(1))
    .join(' ');

print('load of the machine before', load());
const flags = values.profile === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${values.profile}`];
await using server = await ServerUnderTest.open(values.dir, flags);
print('resident, empty', `${whole((await server.figures('collected')).residentMb)} MB`);
await fill(server);
await list(server, 'whole', pods, json);
await list(server, 'as a table', pods, table);
await list(server, '500 of them', `${pods}?limit=500`, json);
await list(server, 'of one label', `${pods}?labelSelector=app%3Dapp-7`, json);
{
  using nobody = await Watchers.open(server.way, []);
  await write(server, nobody, 1, 1);
}
using among = await openWatchers(server);
const { residentMb, heapMb } = await server.figures('collected');
print(`resident, ${watchers} watchers`, `${whole(residentMb)} MB, ${whole(heapMb)} MB of it heap`);
await bareSync();
await write(server, among, 1, 2);
await write(server, among, 8, 3);
await unread(server, watchers);
const last = await server.figures('collected');
print(
  'at the end',
  `${whole(last.residentMb)} MB resident, ${whole(last.heapMb)} MB of it heap, ${last.errors} errors logged`,
);
print('load of the machine after', load());
