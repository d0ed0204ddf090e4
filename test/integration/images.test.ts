import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { Container } from '../../src/kinds/index.ts';
import type { Pod } from '../../src/pods/index.ts';
import { ImageNode, type ImageNodeOptions } from '../fakes/image-node.ts';
import { podOf } from '../fakes/pod-runtime-rig.ts';
import { eventually, KubelingNode } from '../kubeling-node.ts';
import { openPrivateRuntime, type PrivateRuntime } from '../private-runtime.ts';
import { allowRegistry, Registry, registryPassword, registryUser } from '../registry.ts';
import { RegistryProxy } from '../registry-proxy.ts';

const mebibyte = 1 << 20;
const { signal } = new AbortController();
const stays = 'trap "exit 0" TERM; while true; do sleep 0.1; done';

function pod(name: string, image: string, imagePullPolicy: string, ...secrets: readonly string[]): Pod {
  const container: Partial<Container> = { image, imagePullPolicy };
  const imagePullSecrets = secrets.map((secret) => ({ name: secret }));
  return podOf({ main: { ...container, script: stays } }, { imagePullSecrets, hostNetwork: true }, name);
}

describe('images from a real registry', { timeout: 600_000 }, () => {
  let directory: string;
  let runtime: PrivateRuntime;
  let open: Registry;
  let closed: Registry;
  const leave: (() => PromiseLike<unknown>)[] = [];

  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'klg-images-'));
    leave.push(() => rm(directory, { recursive: true, force: true }));
    runtime = await openPrivateRuntime();
    leave.push(() => runtime[Symbol.asyncDispose]());
    open = await registry('open', {});
    closed = await registry('closed', { access: 'password' });
  });

  after(async () => {
    for (const act of leave.toReversed()) await act();
  });

  const certsDir = () => runtime.containerd.layout.registryConfig;

  async function registry(name: string, options: object): Promise<Registry> {
    const own = join(directory, name);
    await mkdir(own);
    const created = await Registry.open({ directory: own, ...options });
    leave.push(() => created.stop());
    await allowRegistry(certsDir(), created.host, { scheme: 'http' });
    return created;
  }

  async function proxyOf(behind: Registry, bytesPerSecond?: number): Promise<RegistryProxy> {
    const proxy = await RegistryProxy.open({
      port: behind.port,
      ...(bytesPerSecond === undefined ? {} : { bytesPerSecond }),
    });
    leave.push(() => proxy[Symbol.asyncDispose]());
    await allowRegistry(certsDir(), proxy.host, { scheme: 'http' });
    return proxy;
  }

  async function nodeOf(options: Partial<ImageNodeOptions> = {}): Promise<ImageNode> {
    const rootDir = await mkdtemp(join(directory, 'root-'));
    return await ImageNode.open({ runtime, rootDir, ...options });
  }

  async function isPresent(image: string): Promise<boolean> {
    return (await runtime.cri.imageStatus({ image: { image } }, signal)).image !== undefined;
  }

  const removeImage = (image: string) => runtime.cri.removeImage({ image: { image } }, signal);

  it('pulls images according to the pull policy: Always, IfNotPresent or Never', async () => {
    await using node = await nodeOf();
    const image = await open.push('policy:1');
    const never = pod('never', image, 'Never');
    assert.equal(await node.sync(never), 'ErrImageNeverPull');
    assert.deepEqual(node.messages('never', 'ErrImageNeverPull'), [
      `Container image "${image}" is not present with pull policy of Never`,
    ]);
    const missing = pod('missing', image, 'IfNotPresent');
    assert.equal(await node.sync(missing), undefined);
    assert.deepEqual(node.messages('missing', 'Pulling'), [`Pulling image "${image}"`]);
    assert.match(
      node.messages('missing', 'Pulled')[0] ?? '',
      /^Successfully pulled image ".*" in [\d.]+m?s \([\d.]+m?s including waiting\)\. Image size: \d+ bytes\.$/,
    );
    const again = pod('again', image, 'IfNotPresent');
    assert.equal(await node.sync(again), undefined);
    const present = `Container image "${image}" already present on machine and can be accessed by the pod`;
    assert.deepEqual(node.messages('again', 'Pulled'), [present]);
    assert.equal(await node.sync(never), undefined);
    const always = pod('always', image, 'Always');
    assert.equal(await node.sync(always), undefined);
    assert.deepEqual(node.messages('always', 'Pulling'), [`Pulling image "${image}"`]);
    for (const each of [never, missing, again, always]) await node.kill(each);
  });

  it("reports the registry's message and backs off when an image is missing or private", async () => {
    await using node = await nodeOf();
    const image = await closed.push('team/private:1');
    const wrongTag = pod('wrong-tag', `${open.host}/policy:none`, 'IfNotPresent');
    assert.equal(await node.sync(wrongTag), 'ErrImagePull');
    assert.match(node.messages('wrong-tag', 'Failed')[0] ?? '', /^Failed to pull image ".*": .*not found/);
    assert.equal(node.messages('wrong-tag', 'Failed')[1], 'Error: ErrImagePull');
    assert.equal(await node.sync(wrongTag), 'ImagePullBackOff');
    assert.match(
      (await node.result(wrongTag)).actions.at(-1)?.failure?.message ?? '',
      /^Back-off pulling image ".*": ErrImagePull: .*not found/,
    );
    node.setSecret('login', closed.host, registryUser, 'wrong');
    const wrongPassword = pod('wrong-password', image, 'IfNotPresent', 'login');
    assert.equal(await node.sync(wrongPassword), 'ErrImagePull');
    assert.match(node.messages('wrong-password', 'Failed')[0] ?? '', /401 Unauthorized|authorization failed/);
    assert.equal(await node.sync(wrongPassword), 'ImagePullBackOff');
    node.setSecret('login', closed.host, registryUser, registryPassword);
    assert.equal(await node.sync(wrongPassword), undefined, 'a corrected secret ends the back-off');
    const reported = JSON.stringify([...node.logs.records, ...node.events, ...node.steps]);
    assert.doesNotMatch(reported, new RegExp(registryPassword));
    for (const each of [wrongTag, wrongPassword]) await node.kill(each);
  });

  it('waits for a registry that is down and pulls the image when it is back', async () => {
    await using node = await nodeOf();
    const image = await open.push('later:1');
    await open.stop();
    const waiting = pod('waiting', image, 'IfNotPresent');
    assert.equal(await node.sync(waiting), 'ErrImagePull');
    assert.match(node.messages('waiting', 'Failed')[0] ?? '', /connection refused/);
    const failedAtMs = performance.now();
    await open.start();
    const { earliestBackoffExpiryMs: untilMs } = await node.result(waiting);
    assert.notEqual(untilMs, undefined);
    await eventually('the image', async () => ((await node.sync(waiting)) === undefined ? true : undefined));
    const waitedMs = performance.now() - failedAtMs;
    assert.ok(waitedMs > 8_000 && waitedMs < 60_000, `it waited ${waitedMs} ms instead of 10 s`);
    await node.kill(waiting);
  });

  it("an image pulled with a pod's secret is not available to pods without the secret, although it is present on the node", async () => {
    const rootDir = await mkdtemp(join(directory, 'root-'));
    await using node = await nodeOf({ rootDir });
    const image = await closed.push('team/mine:1');
    node.setSecret('login', closed.host, registryUser, registryPassword);
    node.setSecret('copy', closed.host, registryUser, registryPassword);
    const owner = pod('owner', image, 'IfNotPresent', 'login');
    assert.equal(await node.sync(owner), undefined);
    const stranger = pod('stranger', image, 'IfNotPresent');
    assert.equal(await node.sync(stranger), 'ErrImagePull', 'it has to pull and is not allowed to');
    const never = pod('never', image, 'Never');
    assert.equal(await node.sync(never), 'ErrImageNeverPull');
    assert.deepEqual(node.messages('never', 'ErrImageNeverPull'), [
      `Container image "${image}" is not present with pull policy of Never`,
    ]);
    const unknown = pod('unknown', image, 'IfNotPresent', 'nothing');
    assert.equal(await node.sync(unknown), 'ErrImagePull');
    assert.deepEqual(node.messages('unknown', 'FailedToRetrieveImagePullSecret').length, 1);
    const friend = pod('friend', image, 'Never', 'copy');
    assert.equal(await node.sync(friend), undefined, 'the same login under another name');

    const pulled = join(rootDir, 'image_manager', 'pulled');
    const [file = ''] = await readdir(pulled);
    const { mode } = await stat(join(pulled, file));
    assert.equal(mode & 0o777, 0o600);
    assert.equal((await stat(pulled)).mode & 0o777, 0o700);
    const record = JSON.parse(await readFile(join(pulled, file), 'utf8'));
    assert.equal(record.kind, 'ImagePulledRecord');
    const { kubernetesSecrets: known } = record.credentialMapping[`${closed.host}/team/mine`];
    assert.deepEqual(
      known.map(({ name }: { readonly name: string }) => name),
      ['copy', 'login'],
    );
    assert.deepEqual(await readdir(join(rootDir, 'image_manager', 'pulling')), []);

    await using second = await nodeOf({ rootDir });
    assert.equal(
      await second.sync(pod('later', image, 'Never')),
      'ErrImageNeverPull',
      'also after a restart',
    );
    for (const each of [owner, friend, stranger, never, unknown]) await node.kill(each);
    await node.kill(pod('later', image, 'Never'));
  });

  it('pulls images over TLS from a registry with a private certificate authority', async () => {
    const own = join(directory, 'tls');
    await mkdir(own);
    const tls = await Registry.open({ directory: own, access: 'password', transport: 'tls' });
    leave.push(() => tls.stop());
    await allowRegistry(certsDir(), tls.host, { scheme: 'https' });
    await using node = await nodeOf();
    const image = await tls.push('secure:1');
    node.setSecret('login', tls.host, registryUser, registryPassword);
    const untrusted = pod('untrusted', image, 'IfNotPresent', 'login');
    assert.equal(await node.sync(untrusted), 'ErrImagePull');
    assert.match(node.messages('untrusted', 'Failed')[0] ?? '', /x509|certificate/);
    await allowRegistry(certsDir(), tls.host, { scheme: 'https', ca: tls.authority });
    const trusted = pod('trusted', image, 'IfNotPresent', 'login');
    assert.equal(await node.sync(trusted), undefined);
    for (const each of [untrusted, trusted]) await node.kill(each);
  });

  it('pulls images with the credentials of a credential provider plugin, which runs once', async () => {
    const binDir = await mkdtemp(join(directory, 'plugins-'));
    const apiVersion = 'credentialprovider.kubelet.k8s.io/v1';
    const asked = join(binDir, 'asked');
    const auth = { [closed.host]: { username: registryUser, password: registryPassword } };
    const response = { kind: 'CredentialProviderResponse', apiVersion, cacheKeyType: 'Registry', auth };
    const script = `#!/bin/sh\n(cat; echo "$REGION $1") >> ${asked}\necho '${JSON.stringify(response)}'\n`;
    await writeFile(join(binDir, 'helper'), script, { mode: 0o755 });
    const provider = {
      name: 'helper',
      matchImages: [closed.host],
      defaultCacheDuration: '10m',
      apiVersion,
      args: ['get'],
      env: [{ name: 'REGION', value: 'north' }],
    };
    const config = {
      apiVersion: 'kubelet.config.k8s.io/v1',
      kind: 'CredentialProviderConfig',
      providers: [provider],
    };
    const configPath = join(binDir, 'config.json');
    await writeFile(configPath, JSON.stringify(config));
    await using node = await nodeOf({ plugins: { configPath, binDir } });
    const images = [await closed.push('plugin/one:1'), await closed.push('plugin/two:1')];
    for (const image of images) {
      const helped = pod('helped', image, 'IfNotPresent');
      assert.equal(await node.sync(helped), undefined);
      await node.kill(helped);
    }
    const [request = '', words, ...rest] = (await readFile(asked, 'utf8')).trim().split('\n');
    assert.deepEqual(JSON.parse(request), {
      kind: 'CredentialProviderRequest',
      apiVersion,
      image: `${closed.host}/plugin/one`,
    });
    assert.equal(words, 'north get');
    assert.deepEqual(rest, [], 'the second image used the cached credential');
  });

  it('reports the progress of a pull from a slow registry at least once a second', async () => {
    const proxy = await proxyOf(open, 2 * mebibyte);
    await using node = await nodeOf();
    await open.push('slow:1', 8 * mebibyte);
    const image = `${proxy.host}/slow:1`;
    const slow = pod('slow', image, 'IfNotPresent');
    assert.equal(await node.sync(slow), undefined);
    const reported = node.steps.filter(({ stage, outcome }) => stage === 'image' && outcome === 'waiting');
    const amounts = reported.flatMap(({ message, atMs }) => {
      const [, bytes, total] = /: ([\d.]+) of ([\d.]+) MiB after/.exec(message) ?? [];
      return bytes === undefined ? [] : [{ bytes: Number(bytes), total: Number(total), atMs }];
    });
    assert.ok(amounts.length >= 4, JSON.stringify(reported));
    const gapsMs: number[] = [];
    for (const [index, { atMs, bytes }] of amounts.entries()) {
      const before = amounts[index - 1];
      if (before === undefined) continue;
      gapsMs.push(atMs - before.atMs);
      assert.ok(bytes >= before.bytes, 'progress never decreases');
    }
    const distinct = new Set(amounts.map(({ bytes }) => bytes));
    assert.ok(distinct.size >= 4, JSON.stringify(amounts));
    // One progress report may be late because the machine is busy.
    assert.ok(gapsMs.filter((ms) => ms > 1_000).length <= 1, `${gapsMs}`);
    assert.ok(Math.abs((amounts.at(-1)?.total ?? 0) - 9.9) < 1, JSON.stringify(amounts.at(-1)));
    await node.kill(slow);
  });

  it('pulls three of ten requested images at a time when the limit is three', async () => {
    const proxy = await proxyOf(open, mebibyte);
    await using node = await nodeOf({ maxParallel: 3 });
    const pods: Pod[] = [];
    for (let at = 0; at < 10; at++) {
      await open.push(`many${at}:1`);
      pods.push(pod(`many${at}`, `${proxy.host}/many${at}:1`, 'IfNotPresent'));
    }
    const reasons = await Promise.all(pods.map((each) => node.sync(each)));
    assert.deepEqual(
      reasons,
      pods.map(() => undefined),
    );
    assert.equal(node.mostPulls, 3);
    assert.equal(proxy.most, 3);
    const queued = node.steps.filter(({ message }) => /position \d of \d/.test(message));
    assert.ok(queued.length > 0);
    const amounts = node.steps.flatMap(({ message }) => / of ([\d.]+) MiB after/.exec(message)?.[1] ?? []);
    const own = (await runtime.cri.imageStatus({ image: { image: `${proxy.host}/many0:1` } }, signal)).image;
    const ownMebibytes = Number(own?.size) / mebibyte;
    assert.ok(amounts.length > 0, 'progress is reported per image');
    for (const amount of amounts)
      assert.ok(Number(amount) < ownMebibytes + 0.2, `${amount} of ${ownMebibytes}`);
    for (const each of pods) await node.kill(each);
  });

  it('an image mounted as a volume affects only the containers that mount it', async () => {
    await using node = await nodeOf();
    const files = await open.push('files:1');
    const image = await open.push('program:1');
    const mounting = (name: string) => ({ volumeMounts: [{ name, mountPath: '/files' }] });
    const both = { image, imagePullPolicy: 'IfNotPresent', script: stays };
    const volumes = [
      { name: 'files', image: { reference: files, pullPolicy: 'IfNotPresent' } },
      { name: 'absent', image: { reference: `${open.host}/absent:1`, pullPolicy: 'IfNotPresent' } },
      { name: 'unused', image: { reference: `${open.host}/unused:1`, pullPolicy: 'Always' } },
    ];
    const mixed = podOf(
      { plain: both, broken: { ...both, ...mounting('absent') }, mounts: { ...both, ...mounting('files') } },
      { volumes, hostNetwork: true },
      'mixed',
    );
    const { actions } = await node.result(mixed);
    const [, plain, broken, mounts] = actions.map(({ failure }) => failure);
    assert.equal(plain, undefined);
    assert.equal(broken?.reason, 'ErrImagePull');
    const [major = 0, minor = 0] = runtime.version.split('.').map(Number);
    if (major > 2 || (major === 2 && minor >= 1)) assert.equal(mounts, undefined);
    else {
      assert.equal(mounts?.reason, 'CreateContainerError');
      assert.match(
        mounts.message,
        /mounts an image at \/files, which requires containerd 2\.1 or CRI-O 1\.31/,
      );
    }
    assert.equal(await isPresent(files), true);
    const pulled = node.messages('mixed', 'Pulling');
    assert.equal(pulled.filter((text) => text.includes('/files:1')).length, 1);
    assert.equal(pulled.filter((text) => text.includes('/unused:1')).length, 0, 'no container mounts it');
    await node.kill(mixed);
  });

  it('cancels the image pull of a deleted pod', async () => {
    const proxy = await proxyOf(open, mebibyte / 2);
    await using node = await nodeOf();
    await open.push('dropped:1', 4 * mebibyte);
    const image = `${proxy.host}/dropped:1`;
    const dropped = pod('dropped', image, 'IfNotPresent');
    const controller = new AbortController();
    const syncing = node.syncUntil(dropped, controller.signal);
    await eventually('the pull to be in flight', async () => {
      return node.steps.some(({ message }) => /[\d.]+ of [\d.]+ MiB/.test(message)) ? true : undefined;
    });
    controller.abort(new Error('The pod was deleted'));
    await assert.rejects(syncing, /The pod was deleted/);
    // The runtime keeps the content pulled so far, but the content must not grow any more.
    const come = async () => JSON.stringify(await runtime.cri.containerdIngests(signal));
    let last = await come();
    await eventually('the content to stop growing', async () => {
      await new Promise((resolve) => setTimeout(resolve, 500));
      const now = await come();
      const isSame = now === last;
      last = now;
      return isSame ? true : undefined;
    });
    assert.equal(await isPresent(image), false);
    await node.kill(dropped);
    await removeImage(image);
  });
});

describe('image pull interrupted by killing the node', { timeout: 300_000 }, () => {
  it('continues the image pull after the restart and reports its progress', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'klg-images-'));
    await using registry = await Registry.open({ directory, access: 'password' });
    await using proxy = await RegistryProxy.open({ port: registry.port, bytesPerSecond: mebibyte });
    await registry.push('big:1', 6 * mebibyte);
    const image = `${proxy.host}/big:1`;
    await using node = await KubelingNode.open(async (dataDir) => {
      await allowRegistry(join(dataDir, 'containerd', 'certs.d'), proxy.host, { scheme: 'http' });
      // The registry credentials of the node, in the file the Go kubelet reads first.
      const login = { username: registryUser, password: registryPassword };
      await mkdir(join(dataDir, 'kubelet'), { mode: 0o700 });
      const config = JSON.stringify({ auths: { [proxy.host]: login } });
      await writeFile(join(dataDir, 'kubelet', 'config.json'), config);
      return {};
    });
    const files = (name: string) => readdir(join(node.dataDir, 'kubelet', 'image_manager', name));
    const told = async () =>
      / ([\d.]+) of ([\d.]+) MiB after/.exec(await node.command('explain', 'big'))?.[1];
    await node.put('big.yaml', {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'big' },
      spec: {
        terminationGracePeriodSeconds: 1,
        containers: [{ name: 'main', image, imagePullPolicy: 'IfNotPresent', command: ['sh', '-c', stays] }],
      },
    });
    const first = await eventually('progress to be reported', told);
    await eventually('more to be reported', async () => ((await told()) === first ? undefined : true));
    assert.equal((await files('pulling')).length, 1, 'the pull is recorded');
    await node.end('SIGKILL');
    assert.equal((await files('pulling')).length, 1);
    proxy.bytesPerSecond = 8 * mebibyte;
    await node.start();
    await node.running('big');
    assert.doesNotMatch(node.out + (await node.command('explain', 'big')), new RegExp(registryPassword));
    assert.deepEqual(await files('pulling'), []);
    const [file = ''] = await files('pulled');
    const path = join(node.dataDir, 'kubelet', 'image_manager', 'pulled', file);
    const record = JSON.parse(await readFile(path, 'utf8'));
    assert.deepEqual(record.credentialMapping, { [`${proxy.host}/big`]: { nodePodsAccessible: true } });
    await node.take('big.yaml');
    assert.deepEqual(await node.leave(), []);
    await rm(directory, { recursive: true, force: true });
  });
});
