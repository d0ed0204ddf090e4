import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { busybox, PodRuntimeRig, podOf } from '../../../test/fakes/pod-runtime-rig.ts';
import { registryOf } from '../../../test/simulator/index.ts';

const files = 'r.io/files:1';
const registry = registryOf([{ reference: files, command: ['x'] }]);
const mounting = (name: string) => ({ volumeMounts: [{ name, mountPath: '/files' }] });
const volumes = [
  { name: 'files', image: { reference: files, pullPolicy: 'Always' } },
  { name: 'absent', image: { reference: 'r.io/absent:1', pullPolicy: 'IfNotPresent' } },
];

describe('images as volumes', () => {
  it('are pulled when a container that mounts them starts, and not on any other sync', async () => {
    using rig = new PodRuntimeRig({ registry, flavour: 'containerd-2' });
    const pod = podOf({ plain: {}, mounts: mounting('files') }, { volumes });
    assert.equal((await rig.sync(pod)).error, undefined);
    assert.equal(rig.calls.filter((call) => call === 'pullImage').length, 1);
    for (let again = 0; again < 3; again++) await rig.sync(pod);
    assert.equal(rig.calls.filter((call) => call === 'pullImage').length, 1);
    assert.deepEqual(rig.eventsOf('Pulling'), [`Pulling image "${files}"`]);
  });

  it('that cannot be had stop the containers that mount them, and no others', async () => {
    using rig = new PodRuntimeRig({ registry, flavour: 'containerd-2' });
    const pod = podOf({ broken: mounting('absent'), plain: {}, sound: mounting('files') }, { volumes });
    const { actions } = await rig.sync(pod);
    assert.deepEqual(actions.map(({ target, failure }) => [target, failure?.reason]).slice(1), [
      ['broken', 'ErrImagePull'],
      ['plain', undefined],
      ['sound', undefined],
    ]);
    const failed = rig.events
      .filter(({ reason }) => reason === 'Failed')
      .map(({ message, fieldPath }) => [message, fieldPath]);
    assert.deepEqual(failed.at(-1), ['Error: ErrImagePull', 'spec.containers{broken}']);
    assert.equal((await rig.sync(pod)).actions.at(-1)?.failure?.reason, 'ImagePullBackOff');
  });

  it('are explained where the runtime knows no such thing', async () => {
    using rig = new PodRuntimeRig({ registry });
    const pod = podOf({ mounts: { ...mounting('files'), image: busybox } }, { volumes });
    const failure = (await rig.sync(pod)).actions.at(-1)?.failure;
    assert.equal(failure?.reason, 'CreateContainerError');
    assert.match(
      failure.message,
      /failed to mkdir "".* \(the container mounts an image at \/files, which takes containerd 2\.1 or CRI-O 1\.31\)$/,
    );
  });
});
