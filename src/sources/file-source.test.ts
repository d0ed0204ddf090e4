import assert from 'node:assert/strict';
import { test } from 'node:test';
import { defaultRules, podManifest } from '../../test/fakes/manifests.ts';
import { MemoryManifestFiles } from '../../test/fakes/memory-source-files.ts';
import { settle, VirtualClock } from '../../test/fakes/virtual-clock.ts';
import { type CollectedLogs, collectLogs } from '../lib/index.ts';
import type { Pod } from '../pods/index.ts';
import { FileSource } from './file-source.ts';
import { describeProblem } from './problems.ts';

const folder = '/etc/manifests';

interface Harness extends AsyncDisposable {
  readonly clock: VirtualClock;
  readonly files: MemoryManifestFiles;
  readonly source: FileSource;
  readonly sets: (readonly Pod[])[];
  readonly told: string[];
  readonly mended: string[];
  readonly logs: CollectedLogs;
  readonly pods: () => readonly string[];
}

/** Runs a FileSource with in-memory manifests in virtual time. */
async function run(
  prepare: (files: MemoryManifestFiles) => void = () => {},
  path = folder,
): Promise<Harness> {
  const clock = new VirtualClock();
  const files = new MemoryManifestFiles();
  files.makeDirectory(folder);
  prepare(files);
  const sets: (readonly Pod[])[] = [];
  const reported: string[] = [];
  const mended: string[] = [];
  const logs = collectLogs(clock);
  const source = new FileSource({
    path,
    files,
    clock,
    nodeName: 'node-a',
    rules: defaultRules,
    logger: logs.logger,
    resyncMs: 20_000,
    setPods: (pods) => void sets.push(pods),
    onProblem: (problem) => void reported.push(describeProblem(problem)),
    onResolved: (path) => void mended.push(path),
  });
  const stop = new AbortController();
  const running = source.run(stop.signal);
  await clock.advance(0);
  await untilQuiet();
  return {
    clock,
    files,
    source,
    sets,
    told: reported,
    mended,
    logs,
    pods: () =>
      (sets.at(-1) ?? []).map(({ metadata, spec }) => `${metadata.name} ${spec.containers[0]?.image}`),
    [Symbol.asyncDispose]: async () => {
      stop.abort();
      await running;
      assert.equal(clock.pendingTimers, 0, 'no timer may be left');
    },
  };
}

/**
 * Waits until the source is idle; real time is needed, because the YAML library is loaded on first
 * use.
 */
async function untilQuiet(): Promise<void> {
  await import('yaml');
  for (let turn = 0; turn < 5; turn++) await settle();
}

test('a later scan delivers new pods while other manifests are still being read', async () => {
  await using harness = await run((files) => files.write(`${folder}/old.yaml`, podManifest('old')));
  await harness.clock.advance(5_000);
  harness.sets.length = 0;
  harness.files.write(`${folder}/old.yaml`, podManifest('old', 'busybox:2'));
  for (const name of ['a', 'b', 'c', 'd', 'e'])
    harness.files.write(`${folder}/${name}.yaml`, podManifest(name));
  await harness.clock.advance(0);
  await untilQuiet();
  assert.deepEqual(
    harness.sets.map((pods) => pods.length),
    [2, 3, 5, 6],
  );
  const images = (pods: readonly Pod[] | undefined) =>
    pods?.find(({ metadata }) => metadata.name.startsWith('old'))?.spec.containers[0]?.image;
  assert.deepEqual(harness.sets.map(images), ['busybox:1', 'busybox:1', 'busybox:1', 'busybox:2']);
});

test('the first scan delivers nothing before all manifests are read', async () => {
  await using harness = await run((files) => {
    for (const name of ['a', 'b', 'c']) files.write(`${folder}/${name}.yaml`, podManifest(name));
  });
  assert.deepEqual(
    harness.sets.map((pods) => pods.length),
    [3],
  );
});

test('reads a manifest directory immediately at start, in the order of file names', async () => {
  await using harness = await run((files) => {
    files.write(`${folder}/b.yaml`, podManifest('b'));
    files.write(
      `${folder}/a.json`,
      '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"containers":[{"name":"x","image":"y:1"}]}}',
    );
    files.write(`${folder}/.hidden.yaml`, podManifest('hidden'));
    files.makeDirectory(`${folder}/sub`);
    files.write(`${folder}/sub/c.yaml`, podManifest('c'));
  });
  assert.deepEqual(harness.pods(), ['a-node-a y:1', 'b-node-a busybox:1']);
  assert.equal(harness.sets.length, 1);
  assert.deepEqual(harness.told, []);
});

test('gives a static pod its annotations, name, node and toleration', async () => {
  await using harness = await run((files) => files.write(`${folder}/a.yaml`, podManifest('a')));
  const [pod] = harness.sets[0] ?? [];
  assert.equal(pod?.metadata.namespace, 'default');
  assert.equal(pod?.spec.nodeName, 'node-a');
  assert.equal(pod?.status.phase, 'Pending');
  assert.equal(pod?.metadata.annotations?.['kubernetes.io/config.hash'], pod?.metadata.uid);
  assert.deepEqual(pod?.spec.tolerations, [{ operator: 'Exists', effect: 'NoExecute' }]);
});

test('scans immediately after the first hint that follows a quiet period', async () => {
  await using harness = await run();
  await harness.clock.advance(5_000);
  harness.files.write(`${folder}/a.yaml`, podManifest('a'));
  await harness.clock.advance(0);
  assert.deepEqual(harness.pods(), ['a-node-a busybox:1']);
});

test('delays the scan after further hints by 100 ms, regardless of their number', async () => {
  await using harness = await run();
  await harness.clock.advance(5_000);
  for (let edit = 0; edit < 300; edit++) {
    harness.files.write(`${folder}/a.yaml`, podManifest('a', `busybox:${edit}`));
    await harness.clock.advance(10);
  }
  await harness.clock.advance(100);
  assert.deepEqual(harness.pods(), ['a-node-a busybox:299']);
  assert.ok(
    harness.sets.length > 20 && harness.sets.length <= 33,
    `${harness.sets.length} lists in three seconds`,
  );
});

test('the periodic scan finds a change without a hint', async () => {
  await using harness = await run();
  harness.files.dropWatchers();
  harness.files.write(`${folder}/a.yaml`, podManifest('a'));
  await harness.clock.advance(19_000);
  assert.deepEqual(harness.pods(), []);
  await harness.clock.advance(1_500);
  assert.deepEqual(harness.pods(), ['a-node-a busybox:1']);
});

test('delivers nothing when a scan finds no change', async () => {
  await using harness = await run((files) => files.write(`${folder}/a.yaml`, podManifest('a')));
  await harness.clock.advance(120_000);
  assert.equal(harness.sets.length, 1);
});

test('keeps the pod when a manifest is removed and restored within 10 ms', async () => {
  await using harness = await run((files) => files.write(`${folder}/a.yaml`, podManifest('a')));
  await harness.clock.advance(1_000);
  harness.files.remove(`${folder}/a.yaml`);
  await harness.clock.advance(5);
  harness.files.write(`${folder}/a.yaml`, podManifest('a'));
  await harness.clock.advance(30_000);
  assert.equal(harness.sets.length, 1);
});

test('removes the pod of a removed manifest within a few milliseconds', async () => {
  await using harness = await run((files) => files.write(`${folder}/a.yaml`, podManifest('a')));
  await harness.clock.advance(1_000);
  harness.files.remove(`${folder}/a.yaml`);
  await harness.clock.advance(15);
  assert.deepEqual(harness.sets.at(-1), []);
});

test('delivers an empty list for a missing manifest directory and checks it each second', async () => {
  await using harness = await run((files) => files.remove(folder));
  assert.deepEqual(harness.sets, [[]]);
  harness.files.dropWatchers();
  harness.files.write(`${folder}/a.yaml`, podManifest('a'));
  await harness.clock.advance(1_100);
  assert.deepEqual(harness.pods(), ['a-node-a busybox:1']);
});

test('reports once that the manifest directory was removed and its pods are terminated, and once that the directory exists again', async () => {
  await using harness = await run((files) => files.write(`${folder}/a.yaml`, podManifest('a')));
  harness.files.remove(folder);
  await harness.clock.advance(60_000);
  assert.deepEqual(harness.pods(), []);
  const reported = [
    `${folder}: does not exist: its pods are terminated, and no static pods run from it until it exists again`,
  ];
  assert.deepEqual(harness.told, reported);
  assert.deepEqual(harness.source.problems().map(describeProblem), reported);
  assert.deepEqual(harness.mended, []);
  harness.files.write(`${folder}/a.yaml`, podManifest('a'));
  await harness.clock.advance(60_000);
  assert.deepEqual([harness.told, harness.mended, harness.source.problems()], [reported, [folder], []]);
});

test('does not report a manifest directory that is missing for a moment only', async () => {
  await using harness = await run((files) => files.write(`${folder}/a.yaml`, podManifest('a')));
  harness.files.remove(folder);
  await harness.clock.advance(50);
  harness.files.write(`${folder}/a.yaml`, podManifest('a'));
  await harness.clock.advance(60_000);
  assert.deepEqual([harness.told, harness.sets.length], [[], 1]);
});

test('reports a failed file watch once and retries it with each scan', async () => {
  await using harness = await run((files) => files.failWatches(new Error('ENOSPC: too many watches')));
  const lines = () => [...harness.logs.records].filter(({ message }) => /atch(ing)? manifests/.test(message));
  await harness.clock.advance(50_000);
  assert.deepEqual(
    lines().map(({ severity }) => severity),
    ['warning'],
  );
  harness.files.failWatches(undefined);
  await harness.clock.advance(20_000);
  harness.files.write(`${folder}/a.yaml`, podManifest('a'));
  await harness.clock.advance(1);
  assert.deepEqual(harness.pods(), ['a-node-a busybox:1']);
  await harness.clock.advance(40_000);
  assert.equal(lines().at(-1)?.message, 'Watching manifests again');
  assert.equal(lines().length, 2);
});

test('delivers the pods of the present manifests while the manifest directory is deleted, recreated empty and filled again', async () => {
  await using harness = await run((files) => files.write(`${folder}/a.yaml`, podManifest('a')));
  harness.files.remove(folder);
  await harness.clock.advance(2_000);
  assert.deepEqual(harness.pods(), []);
  harness.files.makeDirectory(folder);
  await harness.clock.advance(2_000);
  assert.deepEqual(harness.pods(), []);
  harness.files.write(`${folder}/b.yaml`, podManifest('b'));
  await harness.clock.advance(2_000);
  assert.deepEqual(harness.pods(), ['b-node-a busybox:1']);
});

test('keeps the pods of a directory that cannot be read, reports the failure once, and retries with back-off', async () => {
  await using harness = await run((files) => files.write(`${folder}/a.yaml`, podManifest('a')));
  harness.files.fail(folder, new Error('EIO: i/o error'));
  harness.files.write(`${folder}/b.yaml`, podManifest('b'));
  await harness.clock.advance(60_000);
  assert.equal(harness.sets.length, 1);
  assert.deepEqual(harness.told, [`${folder}: cannot be read: EIO: i/o error`]);
  harness.files.fail(folder, undefined);
  await harness.clock.advance(21_000);
  assert.equal(harness.pods().length, 2);
  assert.deepEqual(harness.source.problems(), []);
});

test('keeps the pod after an invalid edit, reports the position once, and replaces the pod after a valid edit', async () => {
  await using harness = await run((files) => files.write(`${folder}/a.yaml`, podManifest('a')));
  const first = harness.sets[0]?.[0];
  harness.files.write(`${folder}/a.yaml`, podManifest('a', '""'));
  await harness.clock.advance(60_000);
  assert.equal(harness.sets.length, 1);
  const problem = `${folder}/a.yaml:8:5: spec.containers[0].image: Required value`;
  assert.deepEqual(harness.told, [problem]);
  assert.deepEqual(harness.source.problems().map(describeProblem), [problem]);
  harness.files.write(`${folder}/a.yaml`, podManifest('a', 'busybox:2'));
  await harness.clock.advance(1_000);
  assert.deepEqual(harness.pods(), ['a-node-a busybox:2']);
  assert.notEqual(harness.sets.at(-1)?.[0]?.metadata.uid, first?.metadata.uid);
  assert.deepEqual(harness.source.problems(), []);
});

test('removes the pod when its invalid manifest is deleted', async () => {
  await using harness = await run((files) => files.write(`${folder}/a.yaml`, podManifest('a')));
  harness.files.write(`${folder}/a.yaml`, 'spec: [');
  await harness.clock.advance(1_000);
  harness.files.remove(`${folder}/a.yaml`);
  await harness.clock.advance(1_000);
  assert.deepEqual(harness.pods(), []);
  assert.deepEqual(harness.source.problems(), []);
});

test('reports no problem of a file that becomes valid before the next scan', async () => {
  await using harness = await run();
  await harness.clock.advance(1_000);
  harness.files.write(`${folder}/a.yaml`, '');
  await harness.clock.advance(50);
  harness.files.write(`${folder}/a.yaml`, podManifest('a'));
  await harness.clock.advance(30_000);
  assert.deepEqual(harness.told, []);
  assert.deepEqual(harness.pods(), ['a-node-a busybox:1']);
});

test('validates each document and each list item of a manifest separately', async () => {
  const list = `apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Pod
  metadata: {name: c}
  spec: {containers: [{name: x, image: 'y:1'}]}
- apiVersion: v1
  kind: Service
  metadata: {name: d}
`;
  await using harness = await run((files) =>
    files.write(
      `${folder}/all.yaml`,
      [podManifest('a'), 'kind: [', '', podManifest('b'), list].join('---\n'),
    ),
  );
  assert.deepEqual(harness.pods(), ['a-node-a busybox:1', 'b-node-a busybox:1', 'c-node-a y:1']);
  await harness.clock.advance(1_000);
  assert.equal(harness.told.length, 2);
  assert.match(harness.told[1] ?? '', /all\.yaml:\d+:\d+: kind: must be Pod: current value is "Service"/);
});

test('removes no pod of a file while one of its documents is invalid', async () => {
  await using harness = await run((files) =>
    files.write(`${folder}/all.yaml`, [podManifest('a'), podManifest('b')].join('---\n')),
  );
  harness.files.write(`${folder}/all.yaml`, [podManifest('a', 'busybox:2'), 'kind: ['].join('---\n'));
  await harness.clock.advance(1_000);
  assert.deepEqual(harness.pods(), ['a-node-a busybox:2', 'b-node-a busybox:1']);
  harness.files.write(`${folder}/all.yaml`, podManifest('a', 'busybox:2'));
  await harness.clock.advance(1_000);
  assert.deepEqual(harness.pods(), ['a-node-a busybox:2']);
});

test('ignores copies left behind by editors and package managers', async () => {
  await using harness = await run((files) => {
    files.write(`${folder}/web.yaml`, podManifest('web'));
    for (const end of ['~', '.bak', '.swp', '.orig', '.rpmsave'])
      files.write(`${folder}/web.yaml${end}`, podManifest('web', 'busybox:old'));
  });
  await harness.clock.advance(1_000);
  assert.deepEqual(harness.pods(), ['web-node-a busybox:1']);
  assert.deepEqual(harness.told, []);
});

test('keeps the running pod when a second file defines the same pod, and reports both locations', async () => {
  await using harness = await run((files) => files.write(`${folder}/m.yaml`, podManifest('web')));
  harness.files.write(`${folder}/a.yaml`, podManifest('web', 'busybox:other'));
  await harness.clock.advance(1_000);
  assert.deepEqual(harness.pods(), ['web-node-a busybox:1']);
  assert.deepEqual(harness.told, [
    `${folder}/a.yaml:1:1: metadata.name: must be unique: the pod default/web-node-a is already defined at ${folder}/m.yaml:1, which stays in use`,
  ]);
  harness.files.write(`${folder}/m.yaml`, podManifest('web', 'busybox:edited'));
  await harness.clock.advance(1_000);
  assert.deepEqual(harness.pods(), ['web-node-a busybox:edited'], 'uses an edit of the manifest in use');
  harness.files.remove(`${folder}/m.yaml`);
  await harness.clock.advance(1_000);
  assert.deepEqual(harness.pods(), ['web-node-a busybox:other'], 'the other manifest takes over immediately');
  assert.deepEqual(harness.source.problems(), []);
});

test('uses the first of two new files that define the same pod', async () => {
  await using harness = await run((files) => {
    files.write(`${folder}/b.yaml`, podManifest('web', 'busybox:b'));
    files.write(`${folder}/a.yaml`, podManifest('web', 'busybox:a'));
  });
  assert.deepEqual(harness.pods(), ['web-node-a busybox:a']);
});

test('rejects the second of two manifests with the same metadata.uid', async () => {
  const withUid = (name: string) => podManifest(name).replace('metadata:', 'metadata:\n  uid: fixed');
  await using harness = await run((files) => {
    files.write(`${folder}/a.yaml`, withUid('a'));
    files.write(`${folder}/b.yaml`, withUid('b'));
  });
  await harness.clock.advance(1_000);
  assert.deepEqual(harness.pods(), ['a-node-a busybox:1']);
  assert.match(
    harness.told[0] ?? '',
    /b\.yaml:1:1: metadata\.uid: must be unique: a pod of the UID fixed is already defined at .*a\.yaml:1/,
  );
});

test('reads a manifest path that is a single file, also when the file is replaced or unreadable at first', async () => {
  await using harness = await run((files) => files.write('/etc/one.yaml', 'nonsense'), '/etc/one.yaml');
  assert.deepEqual(harness.sets, [[]], 'an unusable file counts as a list');
  harness.files.replace('/etc/one.yaml', podManifest('a'));
  await harness.clock.advance(200);
  assert.deepEqual(harness.pods(), ['a-node-a busybox:1']);
  harness.files.replace('/etc/one.yaml', podManifest('b'));
  await harness.clock.advance(200);
  assert.deepEqual(harness.pods(), ['b-node-a busybox:1']);
  harness.files.remove('/etc/one.yaml');
  await harness.clock.advance(200);
  assert.deepEqual(harness.pods(), []);
});

test('runs a pod whose manifest causes only a warning', async () => {
  await using harness = await run((files) =>
    files.write(`${folder}/a.yaml`, podManifest('a', 'x:1', '  restartPolcy: Never\n')),
  );
  await harness.clock.advance(1_000);
  assert.deepEqual(harness.pods(), ['a-node-a x:1']);
  assert.deepEqual(harness.told, [
    `${folder}/a.yaml:9:3: spec.restartPolcy: is not a known field and has no effect (did you mean restartPolicy?)`,
  ]);
});

test('problem reports name the affected pods when the manifest defines their names', async () => {
  await using harness = await run((files) => {
    files.write(`${folder}/kept.yaml`, podManifest('kept'));
    files.write(`${folder}/bad.yaml`, podManifest('bad', '""'));
    files.write(`${folder}/nonsense.yaml`, 'a: [');
  });
  harness.files.write(`${folder}/kept.yaml`, '{');
  await harness.clock.advance(1_000);
  assert.deepEqual(
    harness.source.problems().map(({ path, pods }) => [path.slice(folder.length + 1), pods]),
    [
      ['bad.yaml', ['bad-node-a_default']],
      ['kept.yaml', ['kept-node-a_default']],
      ['nonsense.yaml', []],
    ],
  );
  harness.files.remove(folder);
  await harness.clock.advance(5_000);
  assert.deepEqual(
    harness.source.problems().map(({ pods }) => pods),
    [undefined],
  );
});
