import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdirSync, rmSync } from 'node:fs';
import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import { realClock } from '../../src/lib/index.ts';
import type { Pod } from '../../src/pods/index.ts';
import {
  describeProblem,
  FileSource,
  HttpSource,
  hostManifestFiles,
  httpGet,
  type SourceProblem,
} from '../../src/sources/index.ts';
import { defaultRules, podManifest, quietLogger } from '../fakes/manifests.ts';
import { until } from '../fakes/until.ts';

interface Harness extends AsyncDisposable {
  readonly root: string;
  readonly folder: string;
  readonly sets: (readonly Pod[])[];
  readonly told: SourceProblem[];
  readonly source: FileSource;
  /** Writes a manifest into the directory atomically: creates it elsewhere, then renames it. */
  put(name: string, content: string | Uint8Array): Promise<void>;
  images(): readonly string[];
}

/**
 * Opens a source on a real directory that relies on its inotify watches: it lists the directory
 * only every ten minutes.
 */
async function run(
  options: { readonly link?: boolean; readonly checkMs?: number; readonly single?: string } = {},
): Promise<Harness> {
  const root = await mkdtemp(join(tmpdir(), 'kubeling-sources-'));
  const real = join(root, 'manifests');
  await mkdir(real);
  const folder = options.link === true ? join(root, 'link') : real;
  if (options.link === true) await symlink(real, folder);
  const sets: (readonly Pod[])[] = [];
  const reported: SourceProblem[] = [];
  const source = new FileSource({
    path: options.single === undefined ? folder : join(folder, options.single),
    files: hostManifestFiles(),
    clock: realClock(),
    nodeName: 'node-a',
    rules: defaultRules,
    logger: quietLogger(),
    resyncMs: options.checkMs ?? 600_000,
    setPods: (pods) => void sets.push(pods),
    onProblem: (problem) => void reported.push(problem),
  });
  const stop = new AbortController();
  const running = source.run(stop.signal);
  await until('the source to observe it', () => sets.length > 0);
  return {
    root,
    folder,
    sets,
    told: reported,
    source,
    put: async (name, content) => {
      await writeFile(join(root, 'staged'), content);
      await rename(join(root, 'staged'), join(folder, name));
    },
    images: () =>
      (sets.at(-1) ?? []).map(({ metadata, spec }) => `${metadata.name} ${spec.containers[0]?.image}`),
    [Symbol.asyncDispose]: async () => {
      stop.abort();
      await running;
      await rm(root, { recursive: true });
    },
  };
}

test('detects through its watch that a manifest was renamed into the directory', async () => {
  await using harness = await run();
  await harness.put('web.yaml', podManifest('web'));
  await until('the source to observe it', () => harness.images().length === 1);
  assert.deepEqual(harness.images(), ['web-node-a busybox:1']);
});

test('replaces a pod when a manifest is renamed over its file', async () => {
  await using harness = await run();
  await harness.put('web.yaml', podManifest('web'));
  await until('the source to observe it', () => harness.images().length === 1);
  await harness.put('web.yaml', podManifest('web', 'busybox:2'));
  await until('the source to observe it', () => harness.images()[0] === 'web-node-a busybox:2');
});

test('restarts a pod with the same UID when its manifest is deleted and recreated', async () => {
  await using harness = await run();
  await harness.put('web.yaml', podManifest('web'));
  await until('the source to observe it', () => harness.images().length === 1);
  const first = harness.sets.at(-1)?.[0]?.metadata.uid;
  await rm(join(harness.folder, 'web.yaml'));
  await until('the source to observe it', () => harness.images().length === 0);
  await harness.put('web.yaml', podManifest('web'));
  await until('the source to observe it', () => harness.images().length === 1);
  assert.equal(harness.sets.at(-1)?.[0]?.metadata.uid, first);
});

test('follows a symbolic link in the manifest directory that is changed to another target', async () => {
  await using harness = await run();
  for (const version of ['1', '2'])
    await writeFile(join(harness.root, `v${version}.yaml`), podManifest('web', `busybox:${version}`));
  await symlink('../v1.yaml', join(harness.folder, 'web.yaml'));
  await until('the source to observe it', () => harness.images()[0] === 'web-node-a busybox:1');
  await symlink('../v2.yaml', join(harness.root, 'next'));
  await rename(join(harness.root, 'next'), join(harness.folder, 'web.yaml'));
  await until('the source to observe it', () => harness.images()[0] === 'web-node-a busybox:2');
});

test('follows a manifest directory that is a symbolic link when the link is changed to another target', async () => {
  await using harness = await run({ link: true });
  await harness.put('web.yaml', podManifest('web'));
  await until('the source to observe it', () => harness.images().length === 1);
  await mkdir(join(harness.root, 'other'));
  await writeFile(join(harness.root, 'other', 'db.yaml'), podManifest('db'));
  await symlink(join(harness.root, 'other'), join(harness.root, 'next'));
  await rename(join(harness.root, 'next'), harness.folder);
  await until('the source to observe it', () => harness.images()[0] === 'db-node-a busybox:1');
  await harness.put('db.yaml', podManifest('db', 'busybox:2'));
  await until('the source to observe it', () => harness.images()[0] === 'db-node-a busybox:2');
});

test('converges without stale pods when the manifest directory is deleted, recreated, replaced and emptied', async () => {
  await using harness = await run();
  await harness.put('web.yaml', podManifest('web'));
  await until('the source to observe it', () => harness.images().length === 1);
  await rm(harness.folder, { recursive: true });
  await until('the source to observe it', () => harness.images().length === 0);
  await mkdir(harness.folder);
  await harness.put('db.yaml', podManifest('db'));
  await until('the source to observe it', () => harness.images()[0] === 'db-node-a busybox:1');
  await mkdir(join(harness.root, 'next'));
  await writeFile(join(harness.root, 'next', 'web.yaml'), podManifest('web', 'busybox:9'));
  await rename(harness.folder, join(harness.root, 'away'));
  await rename(join(harness.root, 'next'), harness.folder);
  await until('the source to observe it', () => harness.images()[0] === 'web-node-a busybox:9');
});

test('detects manifests in a directory that is recreated immediately with the same inode number', async () => {
  await using harness = await run();
  const { folder } = harness;
  for (const round of ['a', 'b', 'c']) {
    await harness.put(`${round}.yaml`, podManifest(round));
    await until('the source to observe it', () => harness.images().length === 1);
    // The directory is removed and recreated synchronously so that the source cannot list it in
    // between: file systems reuse inode numbers immediately.
    rmSync(folder, { recursive: true });
    mkdirSync(folder);
    await until('the source to observe the removal', () => harness.images().length === 0);
  }
});

test('reads a single manifest file again after it is replaced by a rename and after it is written in place', async () => {
  await using harness = await run({ single: 'web.yaml' });
  await harness.put('web.yaml', podManifest('web'));
  await until('the source to observe it', () => harness.images().length === 1);
  await harness.put('web.yaml', podManifest('web', 'busybox:2'));
  await until('the source to observe it', () => harness.images()[0] === 'web-node-a busybox:2');
  await writeFile(join(harness.folder, 'web.yaml'), podManifest('web', 'busybox:3'));
  await until('the source to observe it', () => harness.images()[0] === 'web-node-a busybox:3');
  assert.ok(
    harness.sets.slice(1).every((pods) => pods.length === 1),
    'never removed in between',
  );
});

test('converges after 300 in-place rewrites of a manifest without removing the pod in between', async () => {
  await using harness = await run();
  await harness.put('web.yaml', podManifest('web', 'busybox:0'));
  await until('the source to observe it', () => harness.images().length === 1);
  const from = harness.sets.length;
  for (let edit = 1; edit <= 300; edit++) {
    await writeFile(join(harness.folder, 'web.yaml'), podManifest('web', `busybox:${edit}`));
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  await until('the source to observe it', () => harness.images()[0] === 'web-node-a busybox:300');
  assert.ok(harness.sets.slice(from).every((pods) => pods.length === 1));
  assert.deepEqual(harness.source.problems(), []);
});

test('finds a changed manifest by periodic listing when no watch reports it', async () => {
  await using harness = await run({ checkMs: 200, link: true });
  await writeFile(join(harness.root, 'far.yaml'), podManifest('web'));
  await symlink('../far.yaml', join(harness.folder, 'web.yaml'));
  await until('the source to observe it', () => harness.images().length === 1);
  // The watch does not report the change, because the target of the link lies outside of the
  // watched directory.
  await writeFile(join(harness.root, 'far.yaml'), podManifest('web', 'busybox:2'));
  await until('the source to observe it', () => harness.images()[0] === 'web-node-a busybox:2');
});

/** Invalid manifests, each with a pattern of the reported location and field. */
const badManifests: readonly (readonly [string, string | Uint8Array, RegExp])[] = [
  ['empty', '', /empty\.yaml: must define a pod: it is empty/],
  ['comments', '# nothing\n---\n', /comments\.yaml: must define a pod: it is empty/],
  ['binary', Uint8Array.from([0x7f, 0x45, 0x4c, 0x46, 0, 0xff, 0xfe]), /binary\.yaml: must be text in UTF-8/],
  [
    'huge',
    Buffer.alloc(11 * 1024 * 1024, '# filler\n'),
    /huge\.yaml: must be smaller than 10485760 bytes: it has 11534336/,
  ],
  [
    'wrong-kind',
    'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n',
    /wrong-kind\.yaml:2:1: kind: must be Pod: current value is "ConfigMap"/,
  ],
  ['wrong-version', 'apiVersion: v2\nkind: Pod\n', /wrong-version\.yaml:1:1: apiVersion: must be v1/],
  [
    'no-name',
    'apiVersion: v1\nkind: Pod\nmetadata:\n  labels: {a: b}\nspec: {containers: []}\n',
    /no-name\.yaml:3:1: metadata\.name: must be set/,
  ],
  [
    'long-name',
    podManifest('a'.repeat(260)),
    /long-name\.yaml:4:3: metadata\.name: .*no more than 253 characters/,
  ],
  ['tabs', 'apiVersion: v1\nkind: Pod\nmetadata:\n\tname: a\n', /tabs\.yaml:4:1: .*[Tt]ab/],
  [
    'unknown-field',
    podManifest('known', 'x:1', '  hostNetwrk: true\n'),
    /unknown-field\.yaml:9:3: spec\.hostNetwrk: is not a known field and has no effect \(did you mean hostNetwork\?\)/,
  ],
  [
    'wrong-type',
    podManifest('typed', 'x:1', '  hostNetwork: "true"\n'),
    /wrong-type\.yaml:9:16: spec\.hostNetwork: must be true or false/,
  ],
  [
    'z-duplicate',
    podManifest('good', 'busybox:other'),
    /z-duplicate\.yaml:1:1: metadata\.name: must be unique: the pod default\/good-node-a is already defined at .*good\.yaml:1/,
  ],
  [
    'half-written',
    'apiVersion: v1\nkind: Pod\nmetadata: {name: half\nspec:\n  containers:\n  - na',
    /half-written\.yaml:\d+:\d+: /,
  ],
];

test('reports an invalid manifest once with line and field, and the other pods are not affected', async () => {
  await using harness = await run({ checkMs: 300 });
  await harness.put('good.yaml', podManifest('good'));
  await until('the source to observe it', () => harness.images().length === 1);
  const good = harness.sets.at(-1)?.[0];
  for (const [name, content] of badManifests) await harness.put(`${name}.yaml`, content);
  await until('the source to observe it', () => harness.source.problems().length >= badManifests.length);
  for (const image of ['busybox:2', 'busybox:3']) {
    await harness.put('later.yaml', podManifest('later', image));
    await until('the directory was listed again', () => harness.images().includes(`later-node-a ${image}`));
  }
  const lines = harness.source.problems().map(describeProblem);
  assert.deepEqual(harness.told.map(describeProblem).sort(), [...lines].sort());
  for (const [name, , expected] of badManifests)
    assert.equal(
      lines.filter((line) => expected.test(line)).length,
      1,
      `${name}: ${expected}\n${lines.join('\n')}`,
    );
  assert.equal(lines.length, badManifests.length, lines.join('\n'));
  assert.deepEqual(harness.images(), ['good-node-a busybox:1', 'later-node-a busybox:3', 'known-node-a x:1']);
  assert.equal(harness.sets.at(-1)?.[0], good, 'the good pod is the same object');
});

test('accepts manifests with a byte order mark and CRLF line ends', async () => {
  await using harness = await run();
  await harness.put('bom.yaml', `\uFEFF${podManifest('bom')}`);
  await harness.put('crlf.yaml', podManifest('crlf').replaceAll('\n', '\r\n'));
  await harness.put(
    'json.json',
    `\uFEFF{\r\n\t"apiVersion": "v1", "kind": "Pod",\r\n\t"metadata": {"name": "json"},\r\n\t"spec": {"containers": [{"name": "a", "image": "b:1"}]}\r\n}\r\n`,
  );
  await until('the source to observe it', () => harness.images().length === 3);
  assert.deepEqual(harness.images(), ['bom-node-a busybox:1', 'crlf-node-a busybox:1', 'json-node-a b:1']);
  assert.deepEqual(harness.source.problems(), []);
});

test('skips special files such as pipes in the manifest directory', async () => {
  await using harness = await run();
  await mkdir(join(harness.folder, 'folder.yaml'));
  await symlink('/nowhere', join(harness.folder, 'broken.yaml'));
  await symlink('/dev/zero', join(harness.folder, 'zero.yaml'));
  await harness.put('web.yaml', podManifest('web'));
  await until('the source to observe it', () => harness.images().length === 1);
  assert.deepEqual(harness.source.problems(), []);
});

async function serve(response: RequestListener) {
  const server = createServer(response);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/pods`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

test('reads pods from a real HTTP server with the configured headers and through a redirect', async () => {
  const observed: string[] = [];
  await using server = await serve((request, response) => {
    observed.push(`${request.url} ${request.headers['x-node']}`);
    if (request.url === '/pods') response.writeHead(302, { location: '/moved' }).end();
    else response.end(podManifest('web'));
  });
  const sets: (readonly Pod[])[] = [];
  const source = new HttpSource({
    url: server.url,
    headers: { 'X-Node': ['a', 'b'] },
    nodeName: 'node-a',
    rules: defaultRules,
    get: httpGet,
    clock: realClock(),
    logger: quietLogger(),
    resyncMs: 20,
    setPods: (pods) => void sets.push(pods),
    onProblem: () => {},
  });
  const stop = new AbortController();
  const running = source.run(stop.signal);
  await until('the source to observe it', () => observed.length >= 4);
  stop.abort();
  await running;
  assert.equal(sets.length, 1);
  assert.equal(sets[0]?.[0]?.metadata.name, 'web-node-a');
  assert.deepEqual(observed.slice(0, 2), ['/pods a, b', '/moved a, b']);
});

test('ends a manifest request when its signal aborts, and an endless response at the size limit', async () => {
  await using silent = await serve(() => {});
  const stop = new AbortController();
  const asking = httpGet(silent.url, {}, stop.signal);
  stop.abort(new Error('enough'));
  await assert.rejects(asking, /enough/);
  await using endless = await serve((_request, response) => {
    Readable.from(Array.from({ length: 64 }, () => Buffer.alloc(1 << 20))).pipe(response);
  });
  await assert.rejects(httpGet(endless.url, {}, new AbortController().signal), /must be smaller than/);
});
