import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { changeOf, sameJson } from './equality.ts';
import { isMirrorPodOf, PodManager } from './manager.ts';
import { annotations, fullNameOf, type Pod, type PodUid, podUid } from './pod.ts';

type Sort = 'api' | 'file' | 'mirror';

function pod(uid: string, name = 'web', sort: Sort = 'api', hash = 'h1'): Pod {
  const notes: Record<Sort, Record<string, string>> = {
    api: { [annotations.source]: 'api' },
    file: { [annotations.source]: 'file', [annotations.hash]: hash },
    mirror: { [annotations.source]: 'api', [annotations.hash]: hash, [annotations.mirror]: hash },
  };
  return {
    metadata: { name, namespace: 'default', uid: podUid(uid), annotations: notes[sort] },
    spec: { containers: [] },
    status: {},
  };
}

test('finds a pod by UID, full name and name until it is removed', () => {
  const manager = new PodManager();
  const web = pod('1');
  manager.addPod(web);
  assert.equal(manager.getPodByUid(podUid('1')), web);
  assert.equal(manager.getPodByFullName(fullNameOf(web)), web);
  assert.equal(manager.getPodByName('default', 'web'), web);
  assert.deepEqual(manager.getPods(), [web]);
  manager.removePod(web);
  assert.equal(manager.getPodByUid(podUid('1')), undefined);
  assert.equal(manager.getPodByName('default', 'web'), undefined);
});

test('replaces a stored pod when it is updated', () => {
  const manager = new PodManager();
  manager.addPod(pod('1'));
  const newer = { ...pod('1'), status: { phase: 'Running' } };
  manager.updatePod(newer);
  assert.deepEqual(manager.getPods(), [newer]);
});

test('translates UIDs in both directions, whichever of mirror and static pod is added first', () => {
  for (const order of [
    ['static', 'mirror'],
    ['mirror', 'static'],
  ]) {
    const manager = new PodManager();
    const [own, mirror] = [pod('s', 'web', 'file'), pod('m', 'web', 'mirror')];
    for (const which of order) manager.addPod(which === 'static' ? own : mirror);
    assert.equal(manager.translatePodUid(podUid('m')), 's');
    assert.equal(manager.translatePodUid(podUid('s')), 's');
    assert.equal(manager.translatePodUid(podUid('')), '');
    assert.equal(manager.getPodByMirrorPod(mirror), own);
    assert.equal(manager.getMirrorPodByPod(own), mirror);
    assert.deepEqual(manager.getPodAndMirrorPod(mirror), { pod: own, mirrorPod: mirror, asked: 'mirror' });
    assert.deepEqual(manager.getPodAndMirrorPod(own), { pod: own, mirrorPod: mirror, asked: 'pod' });
    const { podToMirror, mirrorToPod } = manager.getUidTranslations();
    assert.deepEqual([...podToMirror], [['s', 'm']]);
    assert.deepEqual([...mirrorToPod], [['m', 's']]);
  }
});

test('neither lists a mirror pod nor finds it by UID', () => {
  const manager = new PodManager();
  const mirror = pod('m', 'web', 'mirror');
  manager.addPod(mirror);
  assert.deepEqual(manager.getPods(), []);
  assert.equal(manager.getPodByUid(podUid('m')), undefined);
  assert.deepEqual(manager.getPodsAndMirrorPods(), {
    pods: [],
    mirrorPods: [mirror],
    orphanedMirrors: ['web_default'],
  });
});

test('keeps the UID translation when the static pod is removed, and drops it with the mirror pod', () => {
  const manager = new PodManager();
  const [own, mirror] = [pod('s', 'web', 'file'), pod('m', 'web', 'mirror')];
  manager.addPod(own);
  manager.addPod(mirror);
  manager.removePod(own);
  assert.equal(manager.translatePodUid(podUid('m')), 's');
  assert.deepEqual(manager.getPodsAndMirrorPods().orphanedMirrors, ['web_default']);
  manager.removePod(mirror);
  assert.equal(manager.translatePodUid(podUid('m')), 'm');
});

test('translates the UID of a static pod without a mirror pod to the empty UID, and has no translations for regular pods', () => {
  const manager = new PodManager();
  manager.addPod(pod('s', 'web', 'file'));
  manager.addPod(pod('r', 'db'));
  assert.deepEqual([...manager.getUidTranslations().podToMirror], [['s', '']]);
});

test('finds API pods of the same name by UID, and the newest one by name', () => {
  const manager = new PodManager();
  const [old, fresh] = [pod('1'), pod('2')];
  manager.addPod(old);
  manager.addPod(fresh);
  assert.equal(manager.getPodByName('default', 'web'), fresh);
  manager.removePod(old);
  assert.equal(manager.getPodByName('default', 'web'), fresh);
  assert.deepEqual(manager.getPods(), [fresh]);
});

test('finds the older of two static pods by full name again when the newer one is removed', () => {
  const manager = new PodManager();
  const [first, second] = [pod('1', 'web', 'file'), pod('2', 'web', 'file')];
  manager.addPod(first);
  manager.addPod(second);
  manager.removePod(second);
  assert.equal(manager.getPodByName('default', 'web'), first);
});

test('compares a mirror pod with its static pod by name and hash', () => {
  assert.ok(isMirrorPodOf(pod('m', 'web', 'mirror', 'h1'), pod('s', 'web', 'file', 'h1')));
  assert.ok(!isMirrorPodOf(pod('m', 'web', 'mirror', 'h1'), pod('s', 'web', 'file', 'h2')));
  assert.ok(!isMirrorPodOf(pod('m', 'web', 'mirror', 'h1'), pod('s', 'db', 'file', 'h1')));
});

test('keeps the indexes of pods consistent after any sequence of changes', () => {
  const step = fc.record({
    act: fc.constantFrom('add', 'remove'),
    uid: fc.constantFrom('1', '2', '3', '4'),
    name: fc.constantFrom('a', 'b'),
    sort: fc.constantFrom<Sort>('file', 'mirror'),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const manager = new PodManager();
      const model = new Map<PodUid, Pod>();
      // In this test all pods with the same UID have the same name and kind.
      const created = new Map<string, Pod>();
      for (const { act, uid, name, sort } of steps) {
        const one = created.get(uid) ?? pod(uid, name, sort);
        created.set(uid, one);
        if (act === 'add') manager.addPod(one);
        else manager.removePod(one);
        if (act === 'add') model.set(one.metadata.uid, one);
        else model.delete(one.metadata.uid);
      }
      const { pods, mirrorPods, orphanedMirrors } = manager.getPodsAndMirrorPods();
      assert.deepEqual(new Set([...pods, ...mirrorPods]), new Set(model.values()));
      const names = new Set(pods.map(fullNameOf));
      for (const name of ['a_default', 'b_default'] as const)
        assert.equal(manager.getPodByFullName(name as never) !== undefined, names.has(name as never));
      assert.deepEqual(
        new Set(orphanedMirrors),
        new Set(mirrorPods.map(fullNameOf).filter((name) => !names.has(name))),
      );
    }),
  );
});

test('finds only a mirror pod of the exact version of its static pod, also after the static pod was removed', () => {
  const manager = new PodManager();
  const file = (hash: string) => pod(hash, 'a', 'file', hash);
  const shown = pod('m', 'a', 'mirror', 'one');
  const plain = pod('p', 'b');
  for (const one of [file('one'), plain]) manager.addPod(one);
  assert.equal(manager.getApiPod(podUid('one')), undefined);
  manager.addPod(shown);
  assert.equal(manager.getApiPod(podUid('one')), shown);
  assert.equal(manager.getApiPod(podUid('p')), plain);
  assert.equal(manager.getApiPod(podUid('nobody')), undefined);
  assert.deepEqual(manager.getStaticPair(fullNameOf(shown)), { pod: file('one'), mirror: shown });
  assert.deepEqual(manager.getStaticPair(fullNameOf(plain)), { pod: undefined, mirror: undefined });
  manager.removePod(file('one'));
  assert.equal(manager.getApiPod(podUid('one')), shown);
  manager.addPod(file('two'));
  assert.equal(manager.getApiPod(podUid('two')), undefined);
});

test('compares JSON values independent of key order, with undefined equal to a missing key', () => {
  assert.ok(sameJson({ a: 1, b: [{ c: null }] }, { b: [{ c: null }], a: 1, d: undefined }));
  assert.ok(!sameJson({ a: 1 }, { a: 1, b: 2 }));
  assert.ok(!sameJson({ a: 1, b: 2 }, { a: 1 }));
  assert.ok(!sameJson([1, 2], [2, 1]));
  assert.ok(!sameJson({}, []));
  assert.ok(!sameJson(null, {}));
});

test('reports only those changes of a pod to which the kubelet reacts', () => {
  const before = pod('1');
  const withMeta = (meta: object): Pod => ({ ...before, metadata: { ...before.metadata, ...meta } });
  assert.equal(changeOf(before, { ...before }), 'none');
  assert.equal(
    changeOf(before, withMeta({ resourceVersion: '7', finalizers: ['x'], generation: 3 })),
    'none',
  );
  assert.equal(changeOf(before, withMeta({ labels: {} })), 'none');
  assert.equal(changeOf(before, withMeta({ annotations: { [annotations.seen]: 'later' } })), 'none');
  assert.equal(changeOf(before, { ...before, status: { phase: 'Running' } }), 'status');
  assert.equal(changeOf(before, withMeta({ labels: { a: 'b' } })), 'desired');
  assert.equal(changeOf(before, withMeta({ annotations: { note: 'x' } })), 'desired');
  assert.equal(changeOf(before, withMeta({ deletionTimestamp: '2026-01-01T00:00:00Z' })), 'desired');
  assert.equal(changeOf(before, withMeta({ deletionGracePeriodSeconds: 0 })), 'desired');
  assert.equal(changeOf(before, { ...before, spec: { containers: [], hostPID: true } }), 'desired');
});
