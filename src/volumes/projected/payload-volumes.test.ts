import assert from 'node:assert/strict';
import { describe, it, test } from 'node:test';
import { MemoryVolumeFiles } from '../../../test/fakes/memory-volume-files.ts';
import { PayloadWorld, podWith, worldUid } from '../../../test/fakes/payload-world.ts';
import { settle, VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import type { Volume, VolumeProjection } from '../../kinds/index.ts';
import type { VolumeFiles } from '../files/volume-files.ts';

const at = (kind: string, name: string) => `/pods/${worldUid}/volumes/kubernetes.io~${kind}/${name}`;
const configMapVolume = (more: object = {}): Volume => ({ name: 'v', configMap: { name: 'cm', ...more } });
const secretVolume = (more: object = {}): Volume => ({ name: 'v', secret: { secretName: 's', ...more } });
const projectedVolume = (...sources: readonly VolumeProjection[]): Volume => ({
  name: 'v',
  projected: { sources },
});

function makeWorld() {
  const files = new MemoryVolumeFiles();
  const clock = new VirtualClock();
  return { files, clock, world: new PayloadWorld(files, '/pods', clock) };
}

/** Prepares the volumes and returns the messages of their problems. */
async function messagesOf(
  environment: PayloadWorld,
  ...volumes: readonly Volume[]
): Promise<readonly string[]> {
  const problems = await environment.volumes().prepare(podWith(volumes), environment.signal);
  return problems.map(({ message }) => message);
}

describe('locations of payload volumes', () => {
  it('locates payload volumes of all four types, and mounts them read-only', () => {
    const { world } = makeWorld();
    const volumes: readonly Volume[] = [
      { name: 'a', configMap: {} },
      { name: 'b', secret: {} },
      { name: 'c', downwardAPI: {} },
      { name: 'd', projected: { sources: [] } },
      { name: 'e', emptyDir: {} },
    ];
    const found = [...world.volumes().of(podWith(volumes))];
    assert.deepEqual(
      found.map(([name, { hostPath, readOnly }]) => [name, hostPath, readOnly]),
      [
        ['a', at('configmap', 'a'), true],
        ['b', at('secret', 'b'), true],
        ['c', at('downward-api', 'c'), true],
        ['d', at('projected', 'd'), true],
      ],
    );
  });
});

describe('a payload volume', () => {
  it('publishes new content of a payload volume at the next set-up and removes the old version', async () => {
    const { files, world } = makeWorld();
    const volumes = world.volumes();
    const pod = podWith([configMapVolume()]);
    world.setConfigMap('cm', { kept: '1', gone: '1', 'deep.txt': 'd' });
    assert.deepEqual(await volumes.prepare(pod, world.signal), []);
    const first = files.entry(`${at('configmap', 'v')}/..data`);
    world.setConfigMap('cm', { kept: '2', added: '2', 'deep.txt': 'd' });
    assert.deepEqual(await volumes.prepare(pod, world.signal), []);
    assert.notDeepEqual(files.entry(`${at('configmap', 'v')}/..data`), first);
    assert.equal(files.text(`${at('configmap', 'v')}/kept`), '2');
    assert.equal(files.text(`${at('configmap', 'v')}/added`), '2');
    assert.equal(files.entry(`${at('configmap', 'v')}/gone`), undefined);
    await volumes.prepare(pod, world.signal);
    const names = await files.names(at('configmap', 'v'));
    assert.deepEqual(names.filter((name) => name.startsWith('..')).length, 2);
  });

  it('neither reads nor writes the files of a payload volume while its content does not change', async () => {
    const { files, world } = makeWorld();
    world.setSecret('s', { a: '1' });
    const calls: string[] = [];
    const watched = new Proxy<VolumeFiles>(files, {
      get: (target, name) => {
        calls.push(String(name));
        return Reflect.get(target, name).bind(target);
      },
    });
    const volumes = world.volumes({ files: watched });
    await volumes.prepare(podWith([secretVolume()]), world.signal);
    calls.length = 0;
    await volumes.prepare(podWith([secretVolume()]), world.signal);
    assert.deepEqual(calls, ['readLink', 'names']);
  });

  it('writes a payload volume again after it was removed', async () => {
    const { files, world } = makeWorld();
    world.setSecret('s', { a: '1' });
    const volumes = world.volumes();
    await volumes.prepare(podWith([secretVolume()]), world.signal);
    await files.unmount(at('secret', 'v'));
    assert.deepEqual(await volumes.prepare(podWith([secretVolume()]), world.signal), []);
    assert.equal(files.text(`${at('secret', 'v')}/a`), '1');
    assert.equal(files.mounts().length, 1);
  });

  it('restores removed files of a payload volume without a new version', async () => {
    const { files, world } = makeWorld();
    world.setSecret('s', { a: '1', b: '2' });
    const volumes = world.volumes();
    await volumes.prepare(podWith([secretVolume()]), world.signal);
    const content = files.entry(`${at('secret', 'v')}/..data`);
    await files.unlink(`${at('secret', 'v')}/a`);
    assert.deepEqual(await volumes.prepare(podWith([secretVolume()]), world.signal), []);
    assert.equal(files.text(`${at('secret', 'v')}/a`), '1');
    assert.deepEqual(files.entry(`${at('secret', 'v')}/..data`), content);
  });

  it('creates an empty directory while an optional object is missing, and fills it when the object appears', async () => {
    const { files, world } = makeWorld();
    const volumes = world.volumes();
    const pod = podWith([configMapVolume({ optional: true })]);
    assert.deepEqual(await volumes.prepare(pod, world.signal), []);
    assert.equal(files.entry(`${at('configmap', 'v')}/..data`)?.kind, 'link');
    world.setConfigMap('cm', { a: '1' });
    await volumes.prepare(pod, world.signal);
    assert.equal(files.text(`${at('configmap', 'v')}/a`), '1');
    world.configMaps.delete('cm');
    await volumes.prepare(pod, world.signal);
    assert.equal(files.text(`${at('configmap', 'v')}/a`), undefined);
    assert.equal(files.entry(`${at('configmap', 'v')}/a`), undefined);
  });

  it('keeps the content of a payload volume and reports a problem when its source becomes unavailable', async () => {
    const { files, world } = makeWorld();
    const volumes = world.volumes();
    const pod = podWith([secretVolume()]);
    const missing = { volume: 'v', message: 'secret "s" not found' };
    assert.deepEqual(await volumes.prepare(pod, world.signal), [{ ...missing, content: 'none' }]);
    assert.deepEqual(files.paths(), []);
    world.setSecret('s', { a: '1' });
    assert.deepEqual(await volumes.prepare(pod, world.signal), []);
    world.secrets.delete('s');
    assert.deepEqual(await volumes.prepare(pod, world.signal), [{ ...missing, content: 'earlier' }]);
    assert.equal(files.text(`${at('secret', 'v')}/a`), '1');
    world.failure = new Error('timed out');
    const [problem] = await world.volumes().prepare(pod, world.signal);
    assert.deepEqual(problem, { volume: 'v', message: 'timed out', content: 'earlier' });
  });

  it('does not create a payload volume that no container uses', async () => {
    const { files, world } = makeWorld();
    const pod = podWith([secretVolume()], { containers: [{ name: 'main', image: 'i' }] });
    assert.deepEqual(await world.volumes().prepare(pod, world.signal), []);
    assert.deepEqual(files.paths(), []);
  });

  it('sets up the other volumes of a pod when one fails', async () => {
    const { files, world } = makeWorld();
    world.setConfigMap('cm', { a: '1' });
    const volumes = [{ ...secretVolume(), name: 's1' }, configMapVolume(), { ...secretVolume(), name: 's2' }];
    const problems = await world.volumes().prepare(podWith(volumes), world.signal);
    assert.deepEqual(
      problems.map(({ volume }) => volume),
      ['s1', 's2'],
    );
    assert.equal(files.text(`${at('configmap', 'v')}/a`), '1');
  });

  it('creates the mount points of other volumes in a payload volume', async () => {
    const { files, world } = makeWorld();
    world.setConfigMap('cm', { a: '1' });
    const volumeMounts = [
      { name: 'v', mountPath: '/etc/conf/' },
      { name: 'x', mountPath: '/etc/conf/deep/inner' },
      { name: 'y', mountPath: '/etc/conf/deep/inner/most' },
      { name: 'z', mountPath: '/etc/config' },
    ];
    const pod = podWith([configMapVolume()], { containers: [{ name: 'main', image: 'i', volumeMounts }] });
    assert.deepEqual(await world.volumes().prepare(pod, world.signal), []);
    const names = (await files.names(at('configmap', 'v'))).filter((name) => !name.startsWith('..'));
    assert.deepEqual(names, ['a', 'deep']);
    assert.equal(files.entry(`${at('configmap', 'v')}/deep/inner`)?.kind, 'directory');
    assert.equal(files.entry(`${at('configmap', 'v')}/deep/inner/most`), undefined);
  });

  it('replaces an empty directory created for a subPath mount', async () => {
    const { files, world } = makeWorld();
    const pod = podWith([configMapVolume()]);
    world.setConfigMap('cm', { a: '1' });
    assert.deepEqual(await world.volumes().prepare(pod, world.signal), []);
    const [late, full] = ['late', 'full'].map((name) => `${at('configmap', 'v')}/${name}`) as [
      string,
      string,
    ];
    await files.makeDirectory(late, 0o777);
    await files.makeDirectory(`${full}/inside`, 0o777);
    world.setConfigMap('cm', { a: '1', late: '2', full: '3' });
    assert.deepEqual(await world.volumes().prepare(pod, world.signal), []);
    assert.equal(await files.readLink(late), '..data/late');
    // A directory that is not empty was not created by this node, so it is kept.
    assert.equal(await files.kindAt(`${full}/inside`), 'directory');
  });

  it('keeps the mount points of other volumes even if a payload file has the same name', async () => {
    const { files, world } = makeWorld();
    const mounts = [
      { name: 'v', mountPath: '/v' },
      { name: 'other', mountPath: '/v/taken' },
    ];
    const containers = [{ name: 'app', image: 'busybox', volumeMounts: mounts }];
    const pod = podWith([configMapVolume(), { name: 'other', emptyDir: {} }], { containers });
    world.setConfigMap('cm', { a: '1', taken: '2' });
    assert.deepEqual(await world.volumes().prepare(pod, world.signal), []);
    assert.equal(await files.kindAt(`${at('configmap', 'v')}/taken`), 'directory');
    assert.equal(await files.readLink(`${at('configmap', 'v')}/a`), '..data/a');
  });

  it('limits the tmpfs of a secret volume to the memory limit of the pod or the allocatable memory of the node', async () => {
    const { files, world } = makeWorld();
    world.setSecret('s', { a: '1' });
    await world.volumes().prepare(podWith([secretVolume()]), world.signal);
    assert.equal(files.mounts()[0]?.sizeBytes, 64n * 2n ** 20n);
    const small = makeWorld();
    small.world.setSecret('s', { a: '1' });
    const resources = { limits: { memory: '8Mi', cpu: '1' }, requests: { memory: '8Mi', cpu: '1' } };
    const volumeMounts = [{ name: 'v', mountPath: '/v' }];
    const containers = [{ name: 'main', image: 'i', resources, volumeMounts }];
    await small.world.volumes().prepare(podWith([secretVolume()], { containers }), small.world.signal);
    assert.equal(small.files.mounts()[0]?.sizeBytes, 8n * 2n ** 20n);
  });

  it('rejects a payload volume whose content exceeds its limit', async () => {
    const { world } = makeWorld();
    world.setSecret('s', { a: 'x'.repeat(100) });
    const allocatable = () => new Map();
    const tiny = world.volumes({
      allocatable: () => new Map([['memory', { nanos: 10n * 10n ** 9n, format: 'BinarySI' }]]),
    });
    const [problem] = await tiny.prepare(podWith([secretVolume()]), world.signal);
    assert.equal(problem?.message, 'its files have 100 bytes, but there is room for 10 bytes only');
    assert.deepEqual(
      await world.volumes({ allocatable }).prepare(podWith([secretVolume()]), world.signal),
      [],
    );
  });
});

describe('fsGroup of payload volumes', () => {
  for (const [kept, mode] of [
    ['true', 0o400],
    ['false', 0o440],
  ] as const)
    it(`gives the fsGroup ${kept === 'true' ? 'the modes of the pod spec with the annotation' : 'read access by default'}`, async () => {
      const { files, world } = makeWorld();
      world.setSecret('s', { key: 'x' });
      const volume = { name: 'v', secret: { secretName: 's', defaultMode: 0o400 } };
      const pod = podWith([volume], { securityContext: { fsGroup: 9 } });
      const annotations = { 'kubeling.dev/fs-group-keeps-modes': kept };
      const problems = await world
        .volumes()
        .prepare({ ...pod, metadata: { ...pod.metadata, annotations } }, world.signal);
      assert.deepEqual(problems, []);
      const version = await files.readLink(`${at('secret', 'v')}/..data`);
      const file = files.entry(`${at('secret', 'v')}/${version}/key`);
      assert.ok(file?.kind === 'file');
      assert.deepEqual([file.mode, file.group], [mode, 9]);
    });
});

test('observes the ownership change of a payload volume once per version', async () => {
  const { world } = makeWorld();
  world.setSecret('s', { key: 'x' });
  const reported: string[] = [];
  const volumes = world.volumes({
    observe: (operation, plugin, { outcome }) => void reported.push(`${operation} ${plugin.name} ${outcome}`),
  });
  const pod = podWith([{ name: 'v', secret: { secretName: 's' } }], { securityContext: { fsGroup: 9 } });
  for (const _time of ['once', 'again']) await volumes.prepare(pod, world.signal);
  assert.deepEqual(reported, [
    'volume_apply_access_control kubernetes.io/secret success',
    'volume_mount kubernetes.io/secret success',
    'volume_mount kubernetes.io/secret success',
  ]);
});

describe('a payload volume with a missing source', () => {
  it('reports a missing source with the message of the Go kubelet', async () => {
    const { world } = makeWorld();
    assert.deepEqual(await messagesOf(world, configMapVolume()), ['configmap "cm" not found']);
    assert.deepEqual(await messagesOf(world, secretVolume()), ['secret "s" not found']);
    world.setConfigMap('cm', {});
    world.setSecret('s', {});
    const items = [{ key: 'k', path: 'p' }];
    assert.deepEqual(await messagesOf(world, configMapVolume({ items })), [
      'configmap references non-existent config key: k',
    ]);
    assert.deepEqual(await messagesOf(world, secretVolume({ items })), [
      'references non-existent secret key: k',
    ]);
    assert.deepEqual(await messagesOf(world, configMapVolume({ items, optional: true })), []);
  });

  it('reports all problems of a projected volume in one message', async () => {
    const { world } = makeWorld();
    const volume = projectedVolume(
      { secret: { name: 's' } },
      { secret: { name: 's' } },
      { configMap: { name: 'cm' } },
      { downwardAPI: { items: [{ path: 'p', fieldRef: { fieldPath: 'status.podIP' } }] } },
    );
    const message = '[secret "s" not found, configmap "cm" not found, unsupported fieldPath: status.podIP]';
    assert.deepEqual(await messagesOf(world, volume), [message]);
  });

  it('rejects projections of clusterTrustBundle and podCertificate', async () => {
    const { files, world } = makeWorld();
    const bundle: VolumeProjection = { clusterTrustBundle: { name: 'b', path: 'p' } };
    const certificate: VolumeProjection = { podCertificate: { signerName: 'a/b', keyType: 'ED25519' } };
    const refused = (kind: string) => [`projections of the kind ${kind} are not supported by this node yet`];
    assert.deepEqual(await messagesOf(world, projectedVolume(bundle)), refused('clusterTrustBundle'));
    assert.deepEqual(await messagesOf(world, projectedVolume(certificate)), refused('podCertificate'));
    assert.deepEqual(files.paths(), []);
  });

  it('rejects all API sources on a node without an API server', async () => {
    const { world } = makeWorld();
    const volumes = world.volumes({ api: undefined });
    const named = [
      { ...secretVolume(), name: 'a' },
      { ...projectedVolume(), name: 'b' },
    ];
    const problems = await volumes.prepare(podWith(named), world.signal);
    assert.deepEqual(
      problems.map(({ message }) => message),
      [
        'not supported due to running kubelet in standalone mode',
        'cannot setup projected volume b because kube client is not configured',
      ],
    );
  });
});

describe('downwardAPI volumes', () => {
  const items = [
    { path: 'labels', fieldRef: { fieldPath: 'metadata.labels' } },
    { path: 'deep/one', mode: 0o400, fieldRef: { fieldPath: "metadata.labels['app']" } },
    { path: 'cpu', resourceFieldRef: { containerName: 'main', resource: 'limits.memory', divisor: '1Mi' } },
  ];
  const volume: Volume = { name: 'v', downwardAPI: { items, defaultMode: 0o600 } };

  it('refreshes a downwardAPI volume when the pod changes', async () => {
    const { files, world } = makeWorld();
    const volumes = world.volumes();
    assert.deepEqual(await volumes.prepare(podWith([volume], {}, { app: 'x' }), world.signal), []);
    assert.equal(files.text(`${at('downward-api', 'v')}/labels`), 'app="x"');
    assert.equal(files.text(`${at('downward-api', 'v')}/deep/one`), 'x');
    assert.equal(files.text(`${at('downward-api', 'v')}/cpu`), '64');
    await volumes.prepare(podWith([volume], {}, { app: 'y', b: 'c' }), world.signal);
    assert.equal(files.text(`${at('downward-api', 'v')}/labels`), 'app="y"\nb="c"');
  });

  it('rejects a downwardAPI volume with an unknown field', async () => {
    const { world } = makeWorld();
    const bad = [
      { path: 'a', fieldRef: { fieldPath: "metadata.name['x']" } },
      { path: 'b', resourceFieldRef: { containerName: 'other', resource: 'limits.cpu' } },
    ];
    assert.deepEqual(await messagesOf(world, { name: 'v', downwardAPI: { items: bad } }), [
      `[fieldPath "metadata.name['x']" does not support subscript, container other not found]`,
    ]);
  });
});

describe('a service account token volume', () => {
  const tokenVolume = projectedVolume({
    serviceAccountToken: { path: 'token', audience: 'vault', expirationSeconds: 600 },
  });
  const tokenAt = `${at('projected', 'v')}/token`;
  const fileOf = (files: MemoryVolumeFiles) => {
    const version = files.entry(`${at('projected', 'v')}/..data`);
    const found = version?.kind === 'link' && files.entry(`${at('projected', 'v')}/${version.target}/token`);
    assert.ok(found && found.kind === 'file');
    return [found.mode, found.owner, found.group];
  };

  it('requests the token that the volume specifies, and writes refreshed tokens', async () => {
    const { files, world } = makeWorld();
    const volumes = world.volumes();
    await volumes.prepare(podWith([tokenVolume]), world.signal);
    assert.deepEqual(world.asks[0], {
      namespace: 'ns',
      serviceAccount: 'robot',
      audience: 'vault',
      expirationSeconds: 600,
      pod: { name: 'pod', uid: worldUid },
    });
    assert.equal(files.text(tokenAt), 'token-1');
    world.token = 'token-2';
    await volumes.prepare(podWith([tokenVolume]), world.signal);
    assert.equal(files.text(tokenAt), 'token-2');
    world.token = new Error('failed to fetch token: no');
    const [problem] = await volumes.prepare(podWith([tokenVolume]), world.signal);
    assert.deepEqual(problem, { volume: 'v', message: 'failed to fetch token: no', content: 'earlier' });
    await volumes.remove(worldUid, world.signal);
    assert.deepEqual(world.forgotten, [worldUid]);
  });

  const rules = [
    { of: 'no user and no group', spec: {}, file: [0o644, 0, 0] },
    { of: 'one user', spec: { securityContext: { runAsUser: 7 } }, file: [0o600, 7, 0] },
    { of: 'a group', spec: { securityContext: { fsGroup: 9 } }, file: [0o640, 0, 9] },
    {
      of: 'a user and a group',
      spec: { securityContext: { runAsUser: 7, fsGroup: 9 } },
      file: [0o640, 7, 9],
    },
  ];
  for (const { of, spec, file } of rules) {
    it(`sets the owner, group and mode of the service account token of a pod with ${of}`, async () => {
      const { files, world } = makeWorld();
      await world.volumes().prepare(podWith([tokenVolume], spec), world.signal);
      assert.deepEqual(fileOf(files), file);
    });
  }

  it("makes a service account token readable by the fsGroup even if the pod's annotation keeps the modes of payload files", async () => {
    const { files, world } = makeWorld();
    const pod = podWith([tokenVolume], { securityContext: { fsGroup: 9 } });
    const metadata = { ...pod.metadata, annotations: { 'kubeling.dev/fs-group-keeps-modes': 'true' } };
    await world.volumes().prepare({ ...pod, metadata }, world.signal);
    assert.deepEqual(fileOf(files), [0o640, 0, 9]);
  });

  it('sets no owner for a service account token if containers run as different users', async () => {
    const { files, world } = makeWorld();
    const volumeMounts = [{ name: 'v', mountPath: '/v' }];
    const containers = [
      { name: 'a', image: 'i', securityContext: { runAsUser: 1 }, volumeMounts },
      { name: 'b', image: 'i', securityContext: { runAsUser: 2 } },
    ];
    await world.volumes().prepare(podWith([tokenVolume], { containers }), world.signal);
    assert.deepEqual(fileOf(files), [0o644, 0, 0]);
  });
});

describe('removal of payload volumes', () => {
  it('removes all files of payload volumes, also those of a previous process', async () => {
    const { files, world } = makeWorld();
    world.setConfigMap('cm', { a: '1' });
    world.setSecret('s', { a: '1' });
    await world
      .volumes()
      .prepare(podWith([configMapVolume(), { ...secretVolume(), name: 's' }]), world.signal);
    await world.volumes().remove(worldUid, world.signal);
    assert.deepEqual(files.mounts(), []);
    assert.deepEqual(
      files.paths().filter((path) => path.includes('~configmap') || path.includes('wrapped')),
      [],
    );
  });

  it('waits briefly for a payload volume that is in use, then rejects the removal with the path of the volume', async () => {
    const { files, clock, world } = makeWorld();
    world.setSecret('s', { a: '1' });
    const volumes = world.volumes();
    await volumes.prepare(podWith([secretVolume()]), world.signal);
    files.busy.add(at('secret', 'v'));
    const removal = assert.rejects(volumes.remove(worldUid, world.signal), {
      code: 'VOLUME_REMOVE',
      message: `${at('secret', 'v')} is still in use`,
    });
    await settle();
    await clock.advance(10_000);
    await removal;
    files.busy.clear();
    await volumes.remove(worldUid, world.signal);
    assert.deepEqual(files.mounts(), []);
  });

  it('rejects the removal of a payload volume on which another program has mounted a file system, and keeps its content', async () => {
    const { files, world } = makeWorld();
    world.setConfigMap('cm', { a: '1' });
    const volumes = world.volumes();
    await volumes.prepare(podWith([configMapVolume()]), world.signal);
    files.mountForeign(at('configmap', 'v'));
    files.put(`${at('configmap', 'v')}/canary`, {
      kind: 'file',
      mode: 0,
      owner: 0,
      group: 0,
      data: Buffer.of(),
    });
    await assert.rejects(volumes.remove(worldUid, world.signal), /is a mount point/);
    assert.ok(files.entry(`${at('configmap', 'v')}/canary`));
  });
});

describe('a payload volume after a kill, or after a completed step that reported an error', () => {
  /**
   * A file system on which every call after the given number fails, as if the process had been
   * killed.
   */
  const dyingAfter = (files: VolumeFiles, calls: number): VolumeFiles => {
    let left = calls;
    return new Proxy(files, {
      get: (target, name) => {
        const call: unknown = Reflect.get(target, name);
        if (typeof call !== 'function') return call;
        return async (...args: readonly unknown[]) => {
          if (left-- <= 0) throw new Error('killed');
          return await Reflect.apply(call, target, args);
        };
      },
    });
  };
  /** A file system that calls `made` after each completed call. */
  const counting = (files: VolumeFiles, made: () => void): VolumeFiles =>
    new Proxy(files, {
      get: (target, name) => {
        const call: unknown = Reflect.get(target, name);
        if (typeof call !== 'function') return call;
        return async (...args: readonly unknown[]) => {
          const response: unknown = await Reflect.apply(call, target, args);
          made();
          return response;
        };
      },
    });
  const pod = podWith([configMapVolume(), { ...secretVolume(), name: 's' }], {
    securityContext: { fsGroup: 5 },
  });

  it('leaves the old or the new content after a kill between any two steps, and no leftovers after a restart', async () => {
    for (let calls = 0; ; calls++) {
      const { files, world } = makeWorld();
      world.setConfigMap('cm', { a: 'old', b: 'old', 'c.d': 'old' });
      world.setSecret('s', { a: 'old' });
      await world.volumes().prepare(pod, world.signal);
      world.setConfigMap('cm', { a: 'new', 'c.d': 'new', e: 'new' });
      world.setSecret('s', { a: 'new' });
      const problems = await world.volumes({ files: dyingAfter(files, calls) }).prepare(pod, world.signal);
      const observed = files.text(`${at('configmap', 'v')}/a`);
      assert.ok(observed === 'old' || observed === 'new', `after ${calls} steps: ${observed}`);
      assert.equal(files.text(`${at('configmap', 'v')}/c.d`), observed);
      const next = world.volumes();
      assert.deepEqual(await next.prepare(pod, world.signal), []);
      await next.prepare(pod, world.signal);
      const names = await files.names(at('configmap', 'v'));
      assert.deepEqual(
        names.filter((name) => !name.startsWith('..')),
        ['a', 'c.d', 'e'],
      );
      assert.equal(names.length, 5, `after ${calls} steps: ${names}`);
      assert.equal(files.text(`${at('secret', 's')}/a`), 'new');
      assert.equal(files.mounts().length, 1);
      if (problems.length === 0) break;
    }
  });

  it('leaves the old or the new content if a completed step reports an error', async () => {
    let steps = 0;
    for (let denied = 1; denied === 1 || denied <= steps; denied++) {
      const { files, world } = makeWorld();
      world.setConfigMap('cm', { a: 'old' });
      world.setSecret('s', { a: 'old' });
      await world.volumes().prepare(pod, world.signal);
      world.setConfigMap('cm', { a: 'new' });
      world.setSecret('s', { a: 'new' });
      steps = 0;
      const unsure = counting(files, () => {
        if (++steps === denied) throw new Error('the result of the call is unknown');
      });
      await world.volumes({ files: unsure }).prepare(pod, world.signal);
      for (const place of [at('configmap', 'v'), at('secret', 's')]) {
        const observed = files.text(`${place}/a`);
        assert.ok(observed === 'old' || observed === 'new', `step ${denied}, ${place}: ${observed}`);
      }
      await world.volumes().prepare(pod, world.signal);
      assert.equal(files.text(`${at('configmap', 'v')}/a`), 'new');
      assert.equal(files.text(`${at('secret', 's')}/a`), 'new');
    }
  });

  it('never lets a pod start with missing files after a kill between any two steps', async () => {
    for (let calls = 0, isOver = false; !isOver; calls++) {
      const { files, world } = makeWorld();
      world.setConfigMap('cm', { a: '1', b: '1' });
      world.setSecret('s', { a: '1', b: '1' });
      await world.volumes({ files: dyingAfter(files, calls) }).prepare(pod, world.signal);
      world.failure = new Error('the API server is unreachable');
      const problems = await world.volumes().prepare(pod, world.signal);
      assert.equal(problems.length, 2);
      for (const { volume, content } of problems) {
        const kind = volume === 's' ? 'secret' : 'configmap';
        const observed = ['a', 'b'].map((name) => files.text(`${at(kind, volume)}/${name}`));
        if (content === 'earlier') assert.deepEqual(observed, ['1', '1'], `after ${calls} steps`);
      }
      isOver = problems.every(({ content }) => content === 'earlier');
    }
  });

  it('completes a first write and a removal that were killed between any two steps', async () => {
    for (let calls = 0, isOver = false; !isOver; calls++) {
      const { files, world } = makeWorld();
      world.setConfigMap('cm', { a: '1' });
      world.setSecret('s', { a: '1' });
      const problems = await world.volumes({ files: dyingAfter(files, calls) }).prepare(pod, world.signal);
      assert.deepEqual(await world.volumes().prepare(pod, world.signal), []);
      assert.equal(files.text(`${at('secret', 's')}/a`), '1');
      assert.equal(files.mounts().length, 1);
      const dying = world.volumes({ files: dyingAfter(files, calls) });
      const removal = await dying.remove(worldUid, world.signal).then(
        () => 'done',
        () => 'killed',
      );
      await world.volumes().remove(worldUid, world.signal);
      assert.deepEqual(files.mounts(), []);
      assert.deepEqual(
        files.paths().filter((path) => path.includes('/volumes/')),
        [],
      );
      isOver = problems.length === 0 && removal === 'done';
    }
  });
});
