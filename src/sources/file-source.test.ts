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

interface Rig extends AsyncDisposable {
  readonly clock: VirtualClock;
  readonly files: MemoryManifestFiles;
  readonly source: FileSource;
  readonly sets: (readonly Pod[])[];
  readonly told: string[];
  readonly mended: string[];
  readonly logs: CollectedLogs;
  /** Names and images of the last list. */
  readonly pods: () => readonly string[];
}

/** A source that runs on manifests in memory under virtual time. */
async function run(prepare: (files: MemoryManifestFiles) => void = () => {}, path = folder): Promise<Rig> {
  const clock = new VirtualClock();
  const files = new MemoryManifestFiles();
  files.makeDirectory(folder);
  prepare(files);
  const sets: (readonly Pod[])[] = [];
  const told: string[] = [];
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
    onProblem: (problem) => void told.push(describeProblem(problem)),
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
    told,
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

/** The YAML library is loaded on first use, which takes real time. */
async function untilQuiet(): Promise<void> {
  await import('yaml');
  for (let turn = 0; turn < 5; turn++) await settle();
}

test('the first new pods are told while the manifests of others are still being read', async () => {
  await using rig = await run((files) => files.write(`${folder}/old.yaml`, podManifest('old')));
  await rig.clock.advance(5_000);
  rig.sets.length = 0;
  rig.files.write(`${folder}/old.yaml`, podManifest('old', 'busybox:2'));
  for (const name of ['a', 'b', 'c', 'd', 'e']) rig.files.write(`${folder}/${name}.yaml`, podManifest(name));
  await rig.clock.advance(0);
  await untilQuiet();
  assert.deepEqual(
    rig.sets.map((pods) => pods.length),
    [2, 3, 5, 6],
  );
  const images = (pods: readonly Pod[] | undefined) =>
    pods?.find(({ metadata }) => metadata.name.startsWith('old'))?.spec.containers[0]?.image;
  assert.deepEqual(rig.sets.map(images), ['busybox:1', 'busybox:1', 'busybox:1', 'busybox:2']);
});

test('at the first look nothing is told before all manifests are read', async () => {
  await using rig = await run((files) => {
    for (const name of ['a', 'b', 'c']) files.write(`${folder}/${name}.yaml`, podManifest(name));
  });
  assert.deepEqual(
    rig.sets.map((pods) => pods.length),
    [3],
  );
});

test('a directory is read at once, in the order of names', async () => {
  await using rig = await run((files) => {
    files.write(`${folder}/b.yaml`, podManifest('b'));
    files.write(
      `${folder}/a.json`,
      '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"containers":[{"name":"x","image":"y:1"}]}}',
    );
    files.write(`${folder}/.hidden.yaml`, podManifest('hidden'));
    files.makeDirectory(`${folder}/sub`);
    files.write(`${folder}/sub/c.yaml`, podManifest('c'));
  });
  assert.deepEqual(rig.pods(), ['a-node-a y:1', 'b-node-a busybox:1']);
  assert.equal(rig.sets.length, 1);
  assert.deepEqual(rig.told, []);
});

test('a static pod has what makes it one', async () => {
  await using rig = await run((files) => files.write(`${folder}/a.yaml`, podManifest('a')));
  const [pod] = rig.sets[0] ?? [];
  assert.equal(pod?.metadata.namespace, 'default');
  assert.equal(pod?.spec.nodeName, 'node-a');
  assert.equal(pod?.status.phase, 'Pending');
  assert.equal(pod?.metadata.annotations?.['kubernetes.io/config.hash'], pod?.metadata.uid);
  assert.deepEqual(pod?.spec.tolerations, [{ operator: 'Exists', effect: 'NoExecute' }]);
});

test('the first hint after a quiet time is followed at once', async () => {
  await using rig = await run();
  await rig.clock.advance(5_000);
  rig.files.write(`${folder}/a.yaml`, podManifest('a'));
  await rig.clock.advance(0);
  assert.deepEqual(rig.pods(), ['a-node-a busybox:1']);
});

test('hints that follow wait a tenth of a second, however many come', async () => {
  await using rig = await run();
  await rig.clock.advance(5_000);
  for (let edit = 0; edit < 300; edit++) {
    rig.files.write(`${folder}/a.yaml`, podManifest('a', `busybox:${edit}`));
    await rig.clock.advance(10);
  }
  await rig.clock.advance(100);
  assert.deepEqual(rig.pods(), ['a-node-a busybox:299']);
  assert.ok(rig.sets.length > 20 && rig.sets.length <= 33, `${rig.sets.length} lists in three seconds`);
});

test('a change nobody hinted at is found by looking now and then', async () => {
  await using rig = await run();
  rig.files.dropWatchers();
  rig.files.write(`${folder}/a.yaml`, podManifest('a'));
  await rig.clock.advance(19_000);
  assert.deepEqual(rig.pods(), []);
  await rig.clock.advance(1_500);
  assert.deepEqual(rig.pods(), ['a-node-a busybox:1']);
});

test('looking without finding anything new sends nothing', async () => {
  await using rig = await run((files) => files.write(`${folder}/a.yaml`, podManifest('a')));
  await rig.clock.advance(120_000);
  assert.equal(rig.sets.length, 1);
});

test('a manifest taken away and put back in a moment is not missed', async () => {
  await using rig = await run((files) => files.write(`${folder}/a.yaml`, podManifest('a')));
  await rig.clock.advance(1_000);
  rig.files.remove(`${folder}/a.yaml`);
  await rig.clock.advance(5);
  rig.files.write(`${folder}/a.yaml`, podManifest('a'));
  await rig.clock.advance(30_000);
  assert.equal(rig.sets.length, 1);
});

test('a removed manifest removes its pod within a few milliseconds', async () => {
  await using rig = await run((files) => files.write(`${folder}/a.yaml`, podManifest('a')));
  await rig.clock.advance(1_000);
  rig.files.remove(`${folder}/a.yaml`);
  await rig.clock.advance(15);
  assert.deepEqual(rig.sets.at(-1), []);
});

test('a missing directory is an empty list, looked for each second', async () => {
  await using rig = await run((files) => files.remove(folder));
  assert.deepEqual(rig.sets, [[]]);
  rig.files.dropWatchers();
  rig.files.write(`${folder}/a.yaml`, podManifest('a'));
  await rig.clock.advance(1_100);
  assert.deepEqual(rig.pods(), ['a-node-a busybox:1']);
});

test('a directory that goes is told once with what follows, and once when it is back', async () => {
  await using rig = await run((files) => files.write(`${folder}/a.yaml`, podManifest('a')));
  rig.files.remove(folder);
  await rig.clock.advance(60_000);
  assert.deepEqual(rig.pods(), []);
  const told = [
    `${folder}: does not exist: pods it asked for are ended, and none come from it until it is back`,
  ];
  assert.deepEqual(rig.told, told);
  assert.deepEqual(rig.source.problems().map(describeProblem), told);
  assert.deepEqual(rig.mended, []);
  rig.files.write(`${folder}/a.yaml`, podManifest('a'));
  await rig.clock.advance(60_000);
  assert.deepEqual([rig.told, rig.mended, rig.source.problems()], [told, [folder], []]);
});

test('a directory that is back in a moment was never gone', async () => {
  await using rig = await run((files) => files.write(`${folder}/a.yaml`, podManifest('a')));
  rig.files.remove(folder);
  await rig.clock.advance(50);
  rig.files.write(`${folder}/a.yaml`, podManifest('a'));
  await rig.clock.advance(60_000);
  assert.deepEqual([rig.told, rig.sets.length], [[], 1]);
});

test('a watch that fails is told once and tried again with each look', async () => {
  await using rig = await run((files) => files.failWatches(new Error('ENOSPC: too many watches')));
  const lines = () => [...rig.logs.records].filter(({ message }) => /^Changes of manifests/.test(message));
  await rig.clock.advance(50_000);
  assert.deepEqual(
    lines().map(({ severity }) => severity),
    ['warning'],
  );
  rig.files.failWatches(undefined);
  await rig.clock.advance(20_000);
  rig.files.write(`${folder}/a.yaml`, podManifest('a'));
  await rig.clock.advance(1);
  assert.deepEqual(rig.pods(), ['a-node-a busybox:1']);
  await rig.clock.advance(40_000);
  assert.equal(lines().at(-1)?.message, 'Changes of manifests are watched again');
  assert.equal(lines().length, 2);
});

test('manifest dir deleted, recreated, emptied: converges, and nothing comes back by itself', async () => {
  await using rig = await run((files) => files.write(`${folder}/a.yaml`, podManifest('a')));
  rig.files.remove(folder);
  await rig.clock.advance(2_000);
  assert.deepEqual(rig.pods(), []);
  rig.files.makeDirectory(folder);
  await rig.clock.advance(2_000);
  assert.deepEqual(rig.pods(), []);
  rig.files.write(`${folder}/b.yaml`, podManifest('b'));
  await rig.clock.advance(2_000);
  assert.deepEqual(rig.pods(), ['b-node-a busybox:1']);
});

test('a directory that cannot be read changes nothing, is told once, and is tried again less and less often', async () => {
  await using rig = await run((files) => files.write(`${folder}/a.yaml`, podManifest('a')));
  rig.files.fail(folder, new Error('EIO: i/o error'));
  rig.files.write(`${folder}/b.yaml`, podManifest('b'));
  await rig.clock.advance(60_000);
  assert.equal(rig.sets.length, 1);
  assert.deepEqual(rig.told, [`${folder}: cannot be read: EIO: i/o error`]);
  rig.files.fail(folder, undefined);
  await rig.clock.advance(21_000);
  assert.equal(rig.pods().length, 2);
  assert.deepEqual(rig.source.problems(), []);
});

test('a bad edit keeps the pod, is told once with its place, and a good one replaces it', async () => {
  await using rig = await run((files) => files.write(`${folder}/a.yaml`, podManifest('a')));
  const first = rig.sets[0]?.[0];
  rig.files.write(`${folder}/a.yaml`, podManifest('a', '""'));
  await rig.clock.advance(60_000);
  assert.equal(rig.sets.length, 1);
  const problem = `${folder}/a.yaml:8:5: spec.containers[0].image: Required value`;
  assert.deepEqual(rig.told, [problem]);
  assert.deepEqual(rig.source.problems().map(describeProblem), [problem]);
  rig.files.write(`${folder}/a.yaml`, podManifest('a', 'busybox:2'));
  await rig.clock.advance(1_000);
  assert.deepEqual(rig.pods(), ['a-node-a busybox:2']);
  assert.notEqual(rig.sets.at(-1)?.[0]?.metadata.uid, first?.metadata.uid);
  assert.deepEqual(rig.source.problems(), []);
});

test('a bad manifest whose file goes takes its pod with it', async () => {
  await using rig = await run((files) => files.write(`${folder}/a.yaml`, podManifest('a')));
  rig.files.write(`${folder}/a.yaml`, 'spec: [');
  await rig.clock.advance(1_000);
  rig.files.remove(`${folder}/a.yaml`);
  await rig.clock.advance(1_000);
  assert.deepEqual(rig.pods(), []);
  assert.deepEqual(rig.source.problems(), []);
});

test('a file that is whole a moment later was never wrong', async () => {
  await using rig = await run();
  await rig.clock.advance(1_000);
  rig.files.write(`${folder}/a.yaml`, '');
  await rig.clock.advance(50);
  rig.files.write(`${folder}/a.yaml`, podManifest('a'));
  await rig.clock.advance(30_000);
  assert.deepEqual(rig.told, []);
  assert.deepEqual(rig.pods(), ['a-node-a busybox:1']);
});

test('several documents and lists are each judged alone', async () => {
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
  await using rig = await run((files) =>
    files.write(
      `${folder}/all.yaml`,
      [podManifest('a'), 'kind: [', '', podManifest('b'), list].join('---\n'),
    ),
  );
  assert.deepEqual(rig.pods(), ['a-node-a busybox:1', 'b-node-a busybox:1', 'c-node-a y:1']);
  await rig.clock.advance(1_000);
  assert.equal(rig.told.length, 2);
  assert.match(rig.told[1] ?? '', /all\.yaml:\d+:\d+: kind: must be Pod: current value is "Service"/);
});

test('while one document of a file is bad, no pod of that file is removed', async () => {
  await using rig = await run((files) =>
    files.write(`${folder}/all.yaml`, [podManifest('a'), podManifest('b')].join('---\n')),
  );
  rig.files.write(`${folder}/all.yaml`, [podManifest('a', 'busybox:2'), 'kind: ['].join('---\n'));
  await rig.clock.advance(1_000);
  assert.deepEqual(rig.pods(), ['a-node-a busybox:2', 'b-node-a busybox:1']);
  rig.files.write(`${folder}/all.yaml`, podManifest('a', 'busybox:2'));
  await rig.clock.advance(1_000);
  assert.deepEqual(rig.pods(), ['a-node-a busybox:2']);
});

test('copies left by editors and package managers are no manifests', async () => {
  await using rig = await run((files) => {
    files.write(`${folder}/web.yaml`, podManifest('web'));
    for (const end of ['~', '.bak', '.swp', '.orig', '.rpmsave'])
      files.write(`${folder}/web.yaml${end}`, podManifest('web', 'busybox:old'));
  });
  await rig.clock.advance(1_000);
  assert.deepEqual(rig.pods(), ['web-node-a busybox:1']);
  assert.deepEqual(rig.told, []);
});

test('of two files with one pod the one in use stays, the other is told naming both', async () => {
  await using rig = await run((files) => files.write(`${folder}/m.yaml`, podManifest('web')));
  rig.files.write(`${folder}/a.yaml`, podManifest('web', 'busybox:other'));
  await rig.clock.advance(1_000);
  assert.deepEqual(rig.pods(), ['web-node-a busybox:1']);
  assert.deepEqual(rig.told, [
    `${folder}/a.yaml:1:1: metadata.name: must be unique: the pod default/web-node-a comes from ${folder}/m.yaml:1 already, and stays so`,
  ]);
  rig.files.write(`${folder}/m.yaml`, podManifest('web', 'busybox:edited'));
  await rig.clock.advance(1_000);
  assert.deepEqual(rig.pods(), ['web-node-a busybox:edited'], 'an edit of the one in use is used');
  rig.files.remove(`${folder}/m.yaml`);
  await rig.clock.advance(1_000);
  assert.deepEqual(rig.pods(), ['web-node-a busybox:other'], 'the survivor takes over at once');
  assert.deepEqual(rig.source.problems(), []);
});

test('of two new files with one pod the first counts', async () => {
  await using rig = await run((files) => {
    files.write(`${folder}/b.yaml`, podManifest('web', 'busybox:b'));
    files.write(`${folder}/a.yaml`, podManifest('web', 'busybox:a'));
  });
  assert.deepEqual(rig.pods(), ['web-node-a busybox:a']);
});

test('one fixed metadata.uid in two manifests: the second is rejected', async () => {
  const withUid = (name: string) => podManifest(name).replace('metadata:', 'metadata:\n  uid: fixed');
  await using rig = await run((files) => {
    files.write(`${folder}/a.yaml`, withUid('a'));
    files.write(`${folder}/b.yaml`, withUid('b'));
  });
  await rig.clock.advance(1_000);
  assert.deepEqual(rig.pods(), ['a-node-a busybox:1']);
  assert.match(
    rig.told[0] ?? '',
    /b\.yaml:1:1: metadata\.uid: must be unique: a pod of the UID fixed comes from .*a\.yaml:1/,
  );
});

test('the path may be a single file, which may be replaced, and may be unreadable at first', async () => {
  await using rig = await run((files) => files.write('/etc/one.yaml', 'nonsense'), '/etc/one.yaml');
  assert.deepEqual(rig.sets, [[]], 'an answer, though of no use, counts as one');
  rig.files.replace('/etc/one.yaml', podManifest('a'));
  await rig.clock.advance(200);
  assert.deepEqual(rig.pods(), ['a-node-a busybox:1']);
  rig.files.replace('/etc/one.yaml', podManifest('b'));
  await rig.clock.advance(200);
  assert.deepEqual(rig.pods(), ['b-node-a busybox:1']);
  rig.files.remove('/etc/one.yaml');
  await rig.clock.advance(200);
  assert.deepEqual(rig.pods(), []);
});

test('a warning does not keep a pod from being used', async () => {
  await using rig = await run((files) =>
    files.write(`${folder}/a.yaml`, podManifest('a', 'x:1', '  restartPolcy: Never\n')),
  );
  await rig.clock.advance(1_000);
  assert.deepEqual(rig.pods(), ['a-node-a x:1']);
  assert.deepEqual(rig.told, [
    `${folder}/a.yaml:9:3: spec.restartPolcy: is not a known field and has no effect (did you mean restartPolicy?)`,
  ]);
});

test('a problem names the pods it concerns, as far as anybody can tell', async () => {
  await using rig = await run((files) => {
    files.write(`${folder}/kept.yaml`, podManifest('kept'));
    files.write(`${folder}/bad.yaml`, podManifest('bad', '""'));
    files.write(`${folder}/nonsense.yaml`, 'a: [');
  });
  rig.files.write(`${folder}/kept.yaml`, '{');
  await rig.clock.advance(1_000);
  assert.deepEqual(
    rig.source.problems().map(({ path, pods }) => [path.slice(folder.length + 1), pods]),
    [
      ['bad.yaml', ['bad-node-a_default']],
      ['kept.yaml', ['kept-node-a_default']],
      ['nonsense.yaml', []],
    ],
  );
  rig.files.remove(folder);
  await rig.clock.advance(5_000);
  assert.deepEqual(
    rig.source.problems().map(({ pods }) => pods),
    [undefined],
  );
});
