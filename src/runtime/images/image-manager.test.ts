import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { memoryRuntimeFiles } from '../../../test/fakes/memory-runtime-files.ts';
import { busybox, PodRuntimeRig, podOf } from '../../../test/fakes/pod-runtime-rig.ts';
import { noCredentials } from '../../../test/fakes/runtime-stubs.ts';
import { noLatency, registryOf, scriptedFaults } from '../../../test/simulator/index.ts';
import { cancelledError, collectLogs, KubelingError, realClock } from '../../lib/index.ts';
import { type Pod, pullPolicyOf, readImageName } from '../../pods/index.ts';
import { pullCredential } from './credentials/keyring.ts';
import { ImageLeases } from './gc/image-leases.ts';
import { PullRecords } from './pull-records/pull-records.ts';
import { RecordFiles } from './pull-records/record-files.ts';

const remote = 'localhost/app:1';
const registry = registryOf([{ reference: remote, pullMs: 1_500, sizeBytes: 1_234, command: ['sh'] }]);

describe('image names', () => {
  it('an image name without tag and digest gets the tag latest', () => {
    const digest = `sha256:${'a'.repeat(64)}`;
    const cases: Readonly<Record<string, string>> = {
      busybox: 'busybox:latest',
      'host:5000/a/b': 'host:5000/a/b:latest',
      'a:1': 'a:1',
      [`a@${digest}`]: `a@${digest}`,
      [`a:1@${digest}`]: `a:1@${digest}`,
    };
    for (const [text, want] of Object.entries(cases)) {
      const read = readImageName(text);
      assert.equal(read.ok ? read.reference : read.why, want);
    }
  });

  it('rejects an invalid image name', () => {
    for (const text of ['', 'UPPER', 'a b', 'a:', 'a@sha256:12', '/a', 'a//b', `${'a'.repeat(256)}`]) {
      assert.equal(readImageName(text).ok, false, text);
    }
  });

  it('the tag of an image name determines the default pull policy', () => {
    assert.equal(pullPolicyOf(undefined, 'a'), 'Always');
    assert.equal(pullPolicyOf(undefined, 'a:latest'), 'Always');
    assert.equal(pullPolicyOf(undefined, `a:latest@sha256:${'0'.repeat(64)}`), 'Always');
    assert.equal(pullPolicyOf(undefined, 'No Name'), 'IfNotPresent');
    assert.equal(pullPolicyOf('', 'a:1'), 'IfNotPresent');
    assert.equal(pullPolicyOf('Never', 'a'), 'Never');
  });
});

describe('images of containers', () => {
  it('pulls missing images, with events about duration and size', async () => {
    using harness = new PodRuntimeRig({ registry });
    const pod = podOf({ a: { image: remote, script: 'sleep 1000' } });
    const observed = await harness.observe(pod);
    harness.takeCalls();
    const context = { liveness: () => undefined, startup: () => undefined };
    const result = await harness.done(harness.runtime.syncPod({ pod, observed, context }, harness.signal));
    assert.equal(result.error, undefined);
    const calls = harness.takeCalls().filter((call) => !call.startsWith('containerd'));
    assert.deepEqual(calls, [
      'imageStatus',
      'runPodSandbox',
      'podSandboxStatus',
      'imageStatus',
      'pullImage',
      'imageStatus',
      'createContainer',
      'startContainer',
    ]);
    assert.deepEqual(harness.eventsOf('Pulling'), [`Pulling image "${remote}"`]);
    assert.match(
      harness.eventsOf('Pulled')[0] ?? '',
      /^Successfully pulled image "localhost\/app:1" in 1\.5\d*s \(1\.5\d*s including waiting\)\. Image size: 1234 bytes\.$/,
    );
  });

  it('pulls images at each start with policy Always, and never with Never', async () => {
    using harness = new PodRuntimeRig({ registry });
    const pod = podOf({
      a: { image: remote, imagePullPolicy: 'Always', script: 'exit 0' },
      b: { image: 'localhost/other:1', imagePullPolicy: 'Never' },
    });
    await harness.sync(pod);
    await harness.clock.advance(100);
    const result = await harness.sync(pod);
    assert.equal(harness.calls.filter((call) => call === 'pullImage').length, 2);
    assert.equal(result.actions.at(-1)?.failure?.reason, 'ErrImageNeverPull');
    assert.equal(
      harness.eventsOf('ErrImageNeverPull')[0],
      'Container image "localhost/other:1" is not present with pull policy of Never',
    );
  });

  it('an image that is removed before it is held is pulled again, and is then held until the container is created', async () => {
    const leases = new ImageLeases();
    using harness = new PodRuntimeRig({ registry, deps: { imageLeases: leases } });
    const pod = podOf({ a: { image: remote, imagePullPolicy: 'Always', script: 'sleep 1000' } });
    const remove = () =>
      harness.cri.listImages({}, harness.signal).then(async ({ images }) => {
        const found = images.find(({ repoTags }) => repoTags.includes(remote));
        if (found === undefined) return 'absent';
        const act = () => harness.cri.removeImage({ image: { image: found.id } }, harness.signal);
        return (await leases.remove(found.id, act)) === 'held' ? 'held' : 'removed';
      });
    await harness.done(harness.cri.pullImage({ image: { image: remote } }, harness.signal));
    const outcomes: string[] = [];
    const { createContainer } = harness.cri;
    Object.assign(harness.cri, {
      createContainer: async (...given: Parameters<typeof createContainer>) => {
        outcomes.push(await remove());
        return await createContainer(...given);
      },
    });
    const syncing = harness.sync(pod);
    await harness.clock.advance(700);
    outcomes.push(await harness.done(remove()));
    assert.equal((await syncing).error, undefined);
    assert.deepEqual(outcomes, ['removed', 'held']);
    assert.equal(harness.calls.filter((call) => call === 'pullImage').length, 2, 'one of the images is held');
    assert.equal(leases.size, 0);
  });

  it('the back-off of failed image pulls grows from 10 s to 300 s, with the reason in every message', async () => {
    using harness = new PodRuntimeRig();
    const pod = podOf({ a: { image: 'localhost/nothing:1' } });
    const observed: string[] = [];
    for (let rounds = 0; rounds < 13; rounds++) {
      const result = await harness.sync(pod);
      const failure = result.actions.at(-1)?.failure;
      const waitMs =
        (result.earliestBackoffExpiryMs ?? harness.clock.monotonicMs()) - harness.clock.monotonicMs();
      observed.push(`${failure?.reason} ${Math.round(waitMs / 1_000)}`);
      if (waitMs > 0)
        assert.match(
          failure?.message ?? '',
          /^Back-off pulling image "localhost\/nothing:1": ErrImagePull: /,
        );
      await harness.clock.advance(waitMs);
    }
    assert.deepEqual(observed, [
      'ErrImagePull 0',
      'ImagePullBackOff 10',
      'ErrImagePull 0',
      'ImagePullBackOff 20',
      'ErrImagePull 0',
      'ImagePullBackOff 40',
      'ErrImagePull 0',
      'ImagePullBackOff 80',
      'ErrImagePull 0',
      'ImagePullBackOff 160',
      'ErrImagePull 0',
      'ImagePullBackOff 300',
      'ErrImagePull 0',
    ]);
    assert.equal(harness.eventsOf('BackOff')[0], 'Back-off pulling image "localhost/nothing:1"');
  });

  it("the waiting reason is the reason with which the runtime's pull error begins", async () => {
    for (const [word, text] of [
      [
        'RegistryUnavailable',
        'image pull failed for localhost/app:1 because the registry is unavailable: down',
      ],
      [
        'SignatureValidationFailed',
        'image pull failed for localhost/app:1 because the signature validation failed: down',
      ],
    ] as const) {
      const fault = { kind: 'error', code: 'UNKNOWN', message: `${word}: down` } as const;
      using harness = new PodRuntimeRig({
        registry,
        faults: scriptedFaults({ calls: [{ method: 'pullImage', fault }] }),
      });
      const result = await harness.sync(podOf({ a: { image: remote } }));
      assert.deepEqual(result.actions.at(-1)?.failure, { reason: word, message: text });
    }
  });

  it('an image that cannot be inspected and an image with an invalid name have different waiting reasons', async () => {
    const fault = { kind: 'error', code: 'UNKNOWN', message: 'broken store' } as const;
    using harness = new PodRuntimeRig({
      faults: scriptedFaults({ calls: [{ method: 'imageStatus', fault }] }),
    });
    const result = await harness.sync(podOf({ a: {}, b: { image: 'No Image' } }));
    assert.deepEqual(
      result.actions.map(({ failure }) => failure?.reason),
      [undefined, 'ImageInspectError', 'InvalidImageName'],
    );
    assert.equal(harness.eventsOf('InspectFailed')[0], `Failed to inspect image "${busybox}": broken store`);
  });

  it('pulls an image once for several pods, and cancels the pull with the last pod', async () => {
    using harness = new PodRuntimeRig({ registry });
    const pods = ['one', 'two', 'three'].map((name) => podOf({ a: { image: remote } }, {}, name));
    const controller = new AbortController();
    const context = { liveness: () => undefined, startup: () => undefined };
    const syncs = [];
    for (const pod of pods) {
      const observed = await harness.observe(pod);
      syncs.push(harness.runtime.syncPod({ pod, observed, context }, controller.signal));
    }
    const settled = Promise.allSettled(syncs);
    await harness.clock.advance(1_000);
    assert.equal(harness.calls.filter((call) => call === 'pullImage').length, 1);
    controller.abort(cancelledError('pods deleted'));
    await harness.done(settled);
    await harness.clock.advance(10_000);
    assert.equal(
      harness.simulated.trace.entries().some(({ kind }) => kind === 'image-pulled'),
      false,
    );
  });

  it('queues image pulls when pulls are serialized', async () => {
    const many = Array.from({ length: 3 }, (_, at) => ({
      reference: `localhost/app:${at}`,
      pullMs: 1_100,
      command: ['sh'],
    }));
    using harness = new PodRuntimeRig({ registry: registryOf(many) });
    const context = { liveness: () => undefined, startup: () => undefined };
    const syncs = [];
    for (const [at, { reference: image }] of many.entries()) {
      const pod = podOf({ a: { image } }, {}, `pod-${at}`);
      const observed = await harness.observe(pod);
      syncs.push(harness.runtime.syncPod({ pod, observed, context }, harness.signal));
    }
    const results = await harness.done(Promise.all(syncs));
    assert.deepEqual(
      results.map(({ error }) => error),
      [undefined, undefined, undefined],
    );
    const waited = harness
      .eventsOf('Pulled')
      .map((text) => /in (\d+)\S* \((\d+)/.exec(text)?.slice(1).join(' of '));
    assert.deepEqual(waited, ['1 of 1', '1 of 2', '1 of 3']);
  });

  it('reports the progress of slow image pulls and the queue position of waiting ones', async () => {
    const many = ['slow', 'next', 'last'].map((name) => ({
      reference: `localhost/${name}:1`,
      pullMs: 45_000,
      command: ['sh'],
    }));
    using harness = new PodRuntimeRig({ registry: registryOf(many) });
    const context = { liveness: () => undefined, startup: () => undefined };
    const syncs = [];
    for (const { reference: image } of many) {
      const pod = podOf({ a: { image } }, {}, `pod-${syncs.length}`);
      const observed = await harness.observe(pod);
      syncs.push(harness.runtime.syncPod({ pod, observed, context }, harness.signal));
      await harness.clock.advance(1_000);
    }
    assert.equal(harness.runtime.pending().pulls, 3);
    await harness.done(Promise.all(syncs));
    assert.deepEqual(harness.eventsOf('PullProgress').slice(0, 6), [
      'Pulling image "localhost/slow:1": 0.4 of 1.9 MiB after 10s',
      'Pulling image "localhost/next:1": queued for 10s, position 1 of 2',
      'Pulling image "localhost/last:1": queued for 10s, position 2 of 2',
      'Pulling image "localhost/slow:1": 1.7 of 1.9 MiB after 40s',
      'Pulling image "localhost/next:1": queued for 40s, position 1 of 2',
      'Pulling image "localhost/last:1": queued for 40s, position 2 of 2',
    ]);
    assert.equal(
      harness.eventsOf('PullProgress').at(6),
      'Pulling image "localhost/next:1": 1.1 of 1.9 MiB after 1m10s',
    );
    assert.equal(harness.runtime.pending().pulls, 0);
    const reported = harness.eventsOf('PullProgress').length;
    await harness.clock.advance(300_000);
    assert.equal(harness.eventsOf('PullProgress').length, reported, 'no progress is reported after the pull');
  });

  it('a pull whose response is lost ends when the image is present', async () => {
    const faults = scriptedFaults({
      calls: [{ method: 'pullImage', fault: { kind: 'lost-reply', code: 'none' } }],
    });
    using harness = new PodRuntimeRig({ registry, faults });
    const { error } = await harness.sync(podOf({ a: { image: remote } }));
    assert.equal(error, undefined);
    assert.equal(harness.calls.filter((call) => call === 'pullImage').length, 1);
    assert.equal(harness.runtime.pending().pulls, 0);
  });

  it('pulls an image again when the response of its pull is lost and the image may have been present before the pull', async () => {
    const faults = scriptedFaults({
      calls: [{ method: 'pullImage', nth: 1, fault: { kind: 'lost-reply', code: 'none' } }],
    });
    using harness = new PodRuntimeRig({ registry, faults });
    const { error } = await harness.sync(podOf({ a: { image: remote, imagePullPolicy: 'Always' } }));
    assert.equal(error, undefined);
    assert.equal(harness.calls.filter((call) => call === 'pullImage').length, 2);
    assert.equal(harness.runtime.pending().pulls, 0);
  });

  it('pulls images with the annotations and the sandbox of the pod, trying the credentials in order', async () => {
    for (const [accepted, failure] of [
      ['second', undefined],
      [
        'without credentials',
        'Failed to pull image "localhost/app:1": [first is refused, second is refused]',
      ],
    ] as const) {
      const login = (username: string) => ({ username, password: '', email: '' });
      const credentialsFor = async () =>
        ['first', 'second'].map((username) => pullCredential(login(username), { kind: 'node' }));
      const credentials = { ...noCredentials, credentialsFor };
      using harness = new PodRuntimeRig({ registry, deps: { credentials } });
      const real = harness.cri.pullImage;
      const requests: unknown[] = [];
      Object.assign(harness.cri, {
        pullImage: async (...[request, signal]: Parameters<typeof real>) => {
          const { username } = request.auth ?? {};
          requests.push([username, request.image?.annotations, request.sandboxConfig?.metadata?.uid]);
          if (username === accepted) return await real({ ...request, auth: undefined }, signal);
          throw new KubelingError('CRI_DENIED', `${username} is refused`);
        },
      });
      const pod = podOf({ a: { image: remote } });
      const annotated = { ...pod, metadata: { ...pod.metadata, annotations: { team: 'blue' } } };
      const result = await harness.sync(annotated);
      assert.equal(result.error === undefined, failure === undefined);
      assert.deepEqual(harness.eventsOf('Failed')[0], failure);
      assert.deepEqual(requests, [
        ['first', { team: 'blue' }, 'uid-web'],
        ['second', { team: 'blue' }, 'uid-web'],
      ]);
    }
  });

  it('a new pod with the same UID inherits no back-off of image pulls', async () => {
    using harness = new PodRuntimeRig();
    const pod = podOf({ a: { image: 'localhost/nothing:1' } });
    const reason = async () => (await harness.sync(pod)).actions.at(-1)?.failure?.reason;
    assert.deepEqual([await reason(), await reason()], ['ErrImagePull', 'ImagePullBackOff']);
    harness.runtime.forgetPod(pod.metadata.uid);
    assert.equal(harness.runtime.pending().pullBackoffs, 0);
    assert.equal(await reason(), 'ErrImagePull');
  });

  it('denies an image that was pulled with a secret to pods without this secret, and pulls it again for pods with another secret', async () => {
    const password = 'sesame';
    const guarded = { reference: 'r.io/app:1', command: ['sh'], credentials: { username: 'u', password } };
    const files = new RecordFiles({
      files: memoryRuntimeFiles(),
      logger: collectLogs(realClock()).logger,
      rootDir: '/',
    });
    const credentialsFor = async ({ spec }: Pod) =>
      (spec.imagePullSecrets ?? []).map(({ name = '' }) =>
        pullCredential(
          { username: 'u', password: name === 'wrong' ? 'no' : password, email: name },
          { kind: 'secret', uid: name, namespace: 'default', name },
        ),
      );
    const clock = realClock();
    const pullRecords = new PullRecords({
      clock,
      logger: collectLogs(clock).logger,
      files,
      policy: { kind: 'NeverVerifyPreloadedImages' },
    });
    const credentials = { ...noCredentials, credentialsFor };
    using harness = new PodRuntimeRig({
      registry: registryOf([guarded]),
      deps: { credentials, pullRecords },
    });
    const reason = async (name: string, imagePullPolicy: string, ...secrets: readonly string[]) => {
      const imagePullSecrets = secrets.map((secret) => ({ name: secret }));
      const pod = podOf({ a: { image: 'r.io/app:1', imagePullPolicy } }, { imagePullSecrets }, name);
      return (await harness.sync(pod)).actions.at(-1)?.failure?.reason;
    };
    assert.equal(await reason('owner', 'IfNotPresent', 'one'), undefined);
    assert.equal(await reason('stranger', 'IfNotPresent'), 'ErrImagePull');
    assert.equal(await reason('never', 'Never'), 'ErrImageNeverPull');
    assert.equal(await reason('liar', 'IfNotPresent', 'wrong'), 'ErrImagePull');
    harness.takeCalls();
    assert.equal(await reason('same', 'Never', 'one'), undefined);
    assert.equal(harness.takeCalls().includes('pullImage'), false);
    assert.equal(await reason('friend', 'IfNotPresent', 'two'), undefined);
    assert.equal(
      harness.takeCalls().includes('pullImage'),
      true,
      'another secret has to be verified by a pull',
    );
    assert.equal(await reason('friend-of-friend', 'Never', 'two'), undefined);
  });

  it('skips the back-off of an image pull after the pull secret has changed', async () => {
    const print = { now: 'a' };
    const credentials = { ...noCredentials, fingerprint: async () => print.now };
    using harness = new PodRuntimeRig({ deps: { credentials } });
    const pod = podOf({ a: { image: 'localhost/nothing:1' } });
    const reason = async () => (await harness.sync(pod)).actions.at(-1)?.failure?.reason;
    assert.deepEqual([await reason(), await reason()], ['ErrImagePull', 'ImagePullBackOff']);
    print.now = 'b';
    assert.deepEqual([await reason(), await reason()], ['ErrImagePull', 'ImagePullBackOff']);
    const { earliestBackoffExpiryMs: untilMs = 0 } = await harness.sync(pod);
    assert.equal(Math.round((untilMs - harness.clock.monotonicMs()) / 1_000), 10, 'the back-off restarts');
  });

  it('reports a stalled image pull by a warning', async () => {
    using harness = new PodRuntimeRig({
      registry: registryOf([{ reference: remote, pullMs: 300_000, command: ['sh'] }]),
    });
    Object.assign(harness.cri, {
      containerdIngests: async () => [{ ref: 'layer-sha256:1', bytes: 2 ** 20, totalBytes: 2 ** 22 }],
      containerdContentOf: async () => new Set(['sha256:1']),
    });
    assert.equal((await harness.sync(podOf({ a: { image: remote } }))).error, undefined);
    const [reported] = harness.events.filter(
      ({ reason, type }) => reason === 'PullProgress' && type === 'Warning',
    );
    assert.equal(
      reported?.message,
      'Pulling image "localhost/app:1": 1.0 of 4.0 MiB after 1m1s, stalled: no data for 1m0s',
    );
    const steps = harness.steps.filter(({ keep }) => keep === 'last');
    assert.ok(steps.length >= 300, 'the journal is updated at least once a second');
  });

  it("an image that another pod pulled concurrently does not prove that the registry accepts a pod's own credentials", async () => {
    const slow = registryOf([{ reference: remote, pullMs: 1_000, command: ['sh'] }]);
    const login = (username: string) => ({ username, password: '', email: '' });
    const credentialsFor = async ({ metadata }: Pod) => [
      pullCredential(login(metadata.name), { kind: 'node' } as const),
    ];
    using harness = new PodRuntimeRig({
      registry: slow,
      deps: {
        credentials: { ...noCredentials, credentialsFor },
        settings: {
          runtimeName: 'containerd',
          podLogsDir: '/logs/pods',
          logLinksDir: '/logs/containers',
          pulls: { maxParallel: 2, qps: 0, burst: 0 },
          gc: { minAgeMs: 0, maxPerContainer: 1, maxContainers: -1 },
        },
      },
    });
    const real = harness.cri.pullImage;
    const tries: string[] = [];
    Object.assign(harness.cri, {
      pullImage: async (...[request, signal]: Parameters<typeof real>) => {
        const username = request.auth?.username ?? '';
        tries.push(username);
        if (username === 'good') return await real(request, signal);
        if (tries.filter((each) => each === 'bad').length > 1) throw new KubelingError('CRI_DENIED', 'no');
        return await new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => reject(signal.reason));
        });
      },
    });
    const context = { liveness: () => undefined, startup: () => undefined };
    const syncs = [];
    for (const name of ['bad', 'good']) {
      const pod = podOf({ a: { image: remote } }, {}, name);
      const observed = await harness.observe(pod);
      syncs.push(harness.runtime.syncPod({ pod, observed, context }, harness.signal));
    }
    const [bad, good] = await harness.done(Promise.all(syncs));
    assert.equal(good?.error, undefined);
    assert.equal(bad?.actions.at(-1)?.failure?.reason, 'ErrImagePull');
    assert.deepEqual(tries.toSorted(), ['bad', 'bad', 'good']);
  });

  it('image pulls above the rate limit fail immediately and can be retried later', async () => {
    const many = [0, 1, 2].map((at) => ({ reference: `localhost/app:${at}`, command: ['sh'], pullMs: 10 }));
    using harness = new PodRuntimeRig({
      registry: registryOf(many),
      latency: noLatency,
      deps: {
        settings: {
          runtimeName: 'containerd',
          podLogsDir: '/logs/pods',
          logLinksDir: '/logs/containers',
          pulls: { maxParallel: undefined, qps: 1, burst: 2 },
          gc: { minAgeMs: 0, maxPerContainer: 1, maxContainers: -1 },
        },
      },
    });
    const pod = podOf(Object.fromEntries(many.map(({ reference: image }, at) => [`c${at}`, { image }])));
    const result = await harness.sync(pod);
    assert.deepEqual(
      result.actions.map(({ failure }) => failure?.message),
      [undefined, undefined, undefined, 'pull QPS exceeded'],
    );
    await harness.clock.advance(20_000);
    assert.equal((await harness.sync(pod)).error, undefined);
  });
});
