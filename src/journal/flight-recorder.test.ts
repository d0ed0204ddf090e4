import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VirtualClock } from '../../test/fakes/virtual-clock.ts';
import { type Pod, podUid } from '../pods/index.ts';
import { explainPod } from './explain.ts';
import { FlightRecorder } from './flight-recorder.ts';

function pod(name: string): Pod {
  return {
    metadata: { name, namespace: 'default', uid: podUid(`uid-${name}`) },
    spec: { containers: [] },
    status: {},
  };
}

test("finds a pod's history by UID, full name and name", () => {
  const recorder = new FlightRecorder({ clock: new VirtualClock() });
  recorder.event(pod('web'), { type: 'Normal', reason: 'Started', message: 'Container started' });
  for (const key of ['uid-web', 'web_default', 'web']) assert.equal(recorder.find(key).length, 1, key);
  assert.deepEqual(recorder.find('other'), []);
});

test("finds a static pod's history by the name in its manifest", () => {
  const recorder = new FlightRecorder({ clock: new VirtualClock(), nodeName: 'node-a' });
  recorder.event(pod('web-node-a'), { type: 'Normal', reason: 'Started', message: 'Container started' });
  for (const key of ['web', 'web_default', 'web-node-a', 'web-node-a_default'])
    assert.equal(recorder.find(key).length, 1, key);
  for (const key of ['web_other', 'we', 'web-node', '']) assert.deepEqual(recorder.find(key), [], key);
});

test('counts a repeated event instead of recording it again', async () => {
  const clock = new VirtualClock();
  const recorder = new FlightRecorder({ clock });
  const event = { type: 'Warning', reason: 'BackOff', message: 'Back-off pulling image "x"' } as const;
  recorder.event(pod('web'), event);
  await clock.advance(10_000);
  recorder.event(pod('web'), event);
  const [story] = recorder.find('web');
  assert.equal(story?.entries.length, 1);
  const [entry] = story?.entries ?? [];
  assert.ok(entry?.is === 'event' && entry.count === 2 && entry.at - entry.since === 10_000);
});

test('records the wait of a pod once while the reason is unchanged, and a new reason as another entry', () => {
  const recorder = new FlightRecorder({ clock: new VirtualClock() });
  const uid = podUid('u');
  for (const message of ['no image', 'no image', 'no network']) {
    recorder.step(uid, { stage: 'sandbox', outcome: 'waiting', message });
  }
  assert.deepEqual(
    recorder.all().flatMap((story) => story.entries.map((entry) => entry.message)),
    ['no image', 'no network'],
  );
});

test('limits the number of pods and the number of entries per pod', () => {
  const recorder = new FlightRecorder({ clock: new VirtualClock(), pods: 3, entriesPerPod: 5 });
  for (let index = 0; index < 10; index++) {
    for (let step = 0; step < 9; step++) {
      recorder.step(podUid(`u${index}`), { stage: 'container', outcome: 'done', message: `${step}` });
    }
  }
  const stories = recorder.all();
  assert.deepEqual(
    stories.map((story) => [story.uid, story.entries.length, story.dropped]),
    ['u7', 'u8', 'u9'].map((uid) => [uid, 5, 4]),
  );
});

test('explainPod lists steps and events, each with the time since the first entry', async () => {
  const clock = new VirtualClock();
  const recorder = new FlightRecorder({ clock });
  const { uid } = pod('web').metadata;
  recorder.step(uid, { stage: 'seen', outcome: 'done', message: 'in /etc/manifests/web.yaml' });
  await clock.advance(1_250);
  recorder.step(uid, {
    stage: 'image',
    outcome: 'failed',
    message: 'no such image',
    container: 'main',
    ms: 1_200,
  });
  recorder.event(pod('web'), {
    type: 'Warning',
    reason: 'Failed',
    message: 'Error: ErrImagePull',
    fieldPath: 'spec.containers{main}',
  });
  const [story] = recorder.find('web');
  assert.ok(story !== undefined);
  assert.equal(
    explainPod(story),
    [
      'web in default (uid-web)',
      '     +0.000s  seen               ok       in /etc/manifests/web.yaml',
      '     +1.250s  image main         FAILED   no such image (1.2s)',
      '     +1.250s  event              Warning  Failed spec.containers{main}: Error: ErrImagePull',
      '',
    ].join('\n'),
  );
});

test('returns the histories of all pods with the same name in the order of their first entry', async () => {
  const clock = new VirtualClock();
  const recorder = new FlightRecorder({ clock });
  const started = { type: 'Normal', reason: 'Started', message: 'Container started' } as const;
  const lives = ['u2', 'u1', 'u3'].map((uid) => ({
    ...pod('web'),
    metadata: { ...pod('web').metadata, uid: podUid(uid) },
  }));
  for (const life of lives) {
    recorder.event(life, started);
    await clock.advance(1_000);
  }
  for (const life of lives.toReversed()) recorder.event(life, started);
  for (const stories of [recorder.find('web'), recorder.all()])
    assert.deepEqual(
      stories.map(({ uid }) => uid),
      ['u2', 'u1', 'u3'],
    );
});

test('truncates a long message to the 1,024 characters that the API accepts', () => {
  const recorder = new FlightRecorder({ clock: new VirtualClock() });
  recorder.event(pod('web'), { type: 'Warning', reason: 'Unhealthy', message: 'x'.repeat(10_240) });
  const [entry] = recorder.find('web')[0]?.entries ?? [];
  assert.equal(entry?.message.length, 1_024);
});

test('alternating failures of a pod do not evict its older history entries', async () => {
  const clock = new VirtualClock();
  const recorder = new FlightRecorder({ clock, entriesPerPod: 8 });
  const web = pod('web');
  recorder.event(web, { type: 'Normal', reason: 'Started', message: 'Container started' });
  for (let round = 0; round < 20; round++) {
    for (const name of ['a', 'b']) {
      recorder.event(web, { type: 'Warning', reason: 'Failed', message: `Error of ${name}` });
      recorder.step(web.metadata.uid, {
        stage: 'container',
        container: name,
        outcome: 'failed',
        message: 'no image',
      });
    }
    await clock.advance(10_000);
  }
  const [story] = recorder.find('web');
  assert.equal(story?.dropped, 0);
  assert.deepEqual(
    story?.entries.map((entry) => [entry.message, entry.is === 'event' ? entry.count : 0]),
    [
      ['Container started', 1],
      ['Error of a', 20],
      ['no image', 0],
      ['Error of b', 20],
      ['no image', 0],
    ],
  );
});
