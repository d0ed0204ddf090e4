import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { podOf } from '../../../../test/fakes/pod-runtime-rig.ts';
import type { Secret } from '../../../kinds/index.ts';
import type { PodEvent } from '../../../pods/index.ts';
import { parseDockerCfg } from './docker-config.ts';
import { noPullSecrets, PodCredentials, type PullSecrets } from './pod-credentials.ts';

const { signal } = new AbortController();
const base64 = (value: unknown) =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64');

function secretOf(name: string, user: string, json?: string): Secret {
  const auths = { 'r.io': { username: user, password: 'sesame' } };
  return {
    metadata: { name, namespace: 'default', uid: `uid-${name}` },
    type: 'kubernetes.io/dockerconfigjson',
    data: { '.dockerconfigjson': base64(json ?? { auths }) },
  };
}

function rigOf(secrets: PullSecrets, node: object = {}) {
  const events: PodEvent[] = [];
  const credentials = new PodCredentials({
    journal: { event: (_pod, event) => void events.push(event) },
    secrets,
    nodeLogins: async () => parseDockerCfg(JSON.stringify(node), 'x'),
    plugins: [],
  });
  return { events, credentials };
}

const secretsOf = (...all: readonly Secret[]): PullSecrets => ({
  async get(namespace, name) {
    const found = all.find(({ metadata }) => metadata?.namespace === namespace && metadata?.name === name);
    if (found === undefined) throw new Error(`no secret named ${name}`);
    return found;
  },
});

const podWith = (...names: readonly string[]) =>
  podOf({ a: {} }, { imagePullSecrets: names.map((name) => ({ name })) });

describe('credentials of a pod', () => {
  it("uses the credentials of the pod's secrets in their order, then those of the node", async () => {
    const older: Secret = {
      ...secretOf('two', ''),
      type: 'kubernetes.io/dockercfg',
      data: { '.dockercfg': base64({ 'https://r.io/v1/': { auth: base64('second:sesame') } }) },
    };
    const { credentials, events } = rigOf(
      secretsOf(secretOf('one', 'first'), older, {
        metadata: { name: 'odd', namespace: 'default' },
        type: 'Opaque',
      }),
      {
        'r.io': { username: 'node' },
      },
    );
    const found = await credentials.credentialsFor(podWith('one', '', 'two', 'odd'), 'r.io/app:1', signal);
    assert.deepEqual(
      found.map(({ auth, source }) => [auth.username, source.kind === 'secret' ? source.uid : source.kind]),
      [
        ['first', 'uid-one'],
        ['second', 'uid-two'],
        ['node', 'node'],
      ],
    );
    assert.deepEqual(events, []);
  });

  it('skips unreadable pull secrets and records an event', async () => {
    const { credentials, events } = rigOf(secretsOf(secretOf('one', 'first')));
    const found = await credentials.credentialsFor(podWith('gone', 'one', 'lost'), 'r.io/app', signal);
    assert.equal(found.length, 1);
    assert.deepEqual(events, [
      {
        type: 'Warning',
        reason: 'FailedToRetrieveImagePullSecret',
        message:
          'Unable to retrieve some image pull secrets (gone, lost); attempting to pull the image may not succeed.',
      },
    ]);
    const alone = rigOf(noPullSecrets);
    assert.deepEqual(await alone.credentials.credentialsFor(podWith('one'), 'r.io/app', signal), []);
    assert.equal(alone.events.length, 1);
  });

  it('rejects when a pull secret of the pod is invalid', async () => {
    const { credentials } = rigOf(secretsOf(secretOf('one', '', '{"auths": sesame')));
    await assert.rejects(
      credentials.credentialsFor(podWith('one'), 'r.io/app', signal),
      (error: Error) => /secret default\/one/.test(error.message) && !/sesame/.test(error.message),
    );
  });

  it('the fingerprint of pod credentials changes with a secret', async () => {
    const of = (user: string) =>
      rigOf(secretsOf(secretOf('one', user))).credentials.fingerprint(podWith('one'), signal);
    assert.equal(await of('a'), await of('a'));
    assert.notEqual(await of('a'), await of('b'));
    assert.equal(await rigOf(noPullSecrets).credentials.fingerprint(podOf({ a: {} }), signal), '');
  });

  it('reads a pull secret only once even if the pod names it 1,000 times', async () => {
    let reads = 0;
    const get: PullSecrets['get'] = async () => {
      reads++;
      return secretOf('one', 'first');
    };
    const { credentials } = rigOf({ get });
    const pod = podWith(...Array.from({ length: 1_000 }, () => 'one'));
    assert.equal((await credentials.credentialsFor(pod, 'r.io/app', signal)).length, 1);
    assert.equal(reads, 1);
    await credentials.fingerprint(pod, signal);
    assert.equal(reads, 2);
  });

  it('ignores all pull secrets after the 64th, with one event', async () => {
    const names = Array.from({ length: 66 }, (_, index) => `s${index}`);
    const { credentials, events } = rigOf(secretsOf(...names.map((name) => secretOf(name, name))));
    const found = await credentials.credentialsFor(podWith(...names), 'r.io/app', signal);
    assert.deepEqual(
      found.map(({ auth }) => auth.username),
      names.slice(0, 64),
    );
    assert.deepEqual(
      events.map(({ reason, message }) => [reason, message]),
      [
        [
          'FailedToRetrieveImagePullSecret',
          'Ignored 2 image pull secrets: kubeling uses the first 64 of a pod.',
        ],
      ],
    );
  });

  it('rejects a pull secret with more than 4,096 registries', async () => {
    const auths = Object.fromEntries(Array.from({ length: 4_097 }, (_, index) => [`r${index}.io`, {}]));
    const { credentials } = rigOf(secretsOf(secretOf('one', '', JSON.stringify({ auths }))));
    await assert.rejects(credentials.credentialsFor(podWith('one'), 'r.io/app', signal), {
      code: 'IMAGE_CREDENTIALS',
      message: 'Cannot use the credentials of the secret default/one as it must have at most 4096 registries',
    });
  });

  it('finds a login among 64 secrets of 4,000 registries within 3 s of CPU time, and again within 1 s', async () => {
    const auths = Object.fromEntries(
      Array.from({ length: 4_000 }, (_, index) => [`r${index}.io/team`, { auth: base64('u:sesame') }]),
    );
    const json = JSON.stringify({ auths });
    const names = Array.from({ length: 64 }, (_, index) => `s${index}`);
    const { credentials } = rigOf(secretsOf(...names.map((name) => secretOf(name, '', json))));
    const pod = podWith(...names);
    const find = async () => {
      const before = process.cpuUsage();
      const found = await credentials.credentialsFor(pod, 'r7.io/team/app', signal);
      await credentials.fingerprint(pod, signal);
      const { user, system } = process.cpuUsage(before);
      return { count: found.length, ms: (user + system) / 1_000 };
    };
    const [first, second] = [await find(), await find()];
    assert.equal(first.count, 64);
    assert.ok(first.ms < 3_000, `took ${first.ms} ms`);
    assert.ok(second.ms < 1_000, `took ${second.ms} ms`);
  });
});
