import assert from 'node:assert/strict';
import { describe, it, test } from 'node:test';
import { podOf } from '../../../../test/fakes/pod-runtime-rig.ts';
import { VirtualClock } from '../../../../test/fakes/virtual-clock.ts';
import { collectLogs, MetricRegistry } from '../../../lib/index.ts';
import type { PluginCommand } from './exec-plugin.ts';
import {
  noServiceAccounts,
  PluginProvider,
  type PluginSpec,
  pluginMetrics,
  type ServiceAccounts,
} from './plugin-provider.ts';

const apiVersion = 'credentialprovider.kubelet.k8s.io/v1';
const spec: PluginSpec = {
  name: 'ecr',
  matchImages: ['*.r.io', 'r.io/team'],
  defaultCacheDurationMs: 60_000,
  apiVersion,
  args: ['get'],
  env: [{ name: 'REGION', value: 'north' }],
  tokenAttributes: undefined,
};
const tokens: PluginSpec['tokenAttributes'] = {
  serviceAccountTokenAudience: 'registry',
  cacheType: 'ServiceAccount',
  requireServiceAccount: true,
  requiredServiceAccountAnnotationKeys: ['r.io/id'],
  optionalServiceAccountAnnotationKeys: ['r.io/extra'],
};
const pod = podOf({ a: {} });
const ofAccount = (name: string) => podOf({ a: {} }, { serviceAccountName: name });

function answer(fields: object = {}): object {
  const auth = { '*.r.io': { username: 'u', password: 'sesame' } };
  return { kind: 'CredentialProviderResponse', apiVersion, cacheKeyType: 'Registry', auth, ...fields };
}

interface RigOptions {
  readonly changed?: Partial<PluginSpec>;
  readonly reply?: () => object | string;
  readonly exitCode?: number;
  readonly serviceAccounts?: ServiceAccounts;
}

function rigOf({ changed, reply = answer, exitCode = 0, serviceAccounts = noServiceAccounts }: RigOptions) {
  const clock = new VirtualClock();
  const logs = collectLogs(clock);
  const runs: PluginCommand[] = [];
  const counted: string[] = [];
  const provider = new PluginProvider(
    { ...spec, ...changed },
    {
      clock,
      logger: logs.logger,
      binDir: '/plugins',
      serviceAccounts,
      observer: { ran: (name, _ms, outcome) => void counted.push(`${name} ${outcome}`) },
      async run(command) {
        runs.push(command);
        const output = reply();
        return {
          exitCode,
          stdout: typeof output === 'string' ? output : JSON.stringify(output),
          stderr: 'oh',
        };
      },
    },
  );
  const { signal } = new AbortController();
  const ask = (image: string, who = pod) => provider.provide(who, image, signal);
  return { clock, logs, runs, counted, ask };
}

describe('credential provider plugin', () => {
  it('calls a credential plugin with its arguments and environment for images that match', async () => {
    const { ask, runs, counted } = rigOf({});
    assert.equal(await ask('r.io/other'), undefined);
    const found = await ask('a.r.io/app');
    assert.deepEqual(
      [...(found?.logins ?? [])],
      [['*.r.io', { username: 'u', password: 'sesame', email: '' }]],
    );
    assert.deepEqual(found?.source, { kind: 'node' });
    const input = `{"kind":"CredentialProviderRequest","apiVersion":"${apiVersion}","image":"a.r.io/app"}\n`;
    assert.deepEqual(runs, [{ file: '/plugins/ecr', args: ['get'], env: { REGION: 'north' }, input }]);
    assert.deepEqual(counted, ['ecr worked']);
  });

  it('caches the response of a credential plugin by image, by registry or globally', async () => {
    for (const [cacheKeyType, runsWanted] of [
      ['Image', 3],
      ['Registry', 2],
      ['Global', 1],
    ] as const) {
      const { ask, runs } = rigOf({ reply: () => answer({ cacheKeyType }) });
      for (const image of ['a.r.io/app', 'a.r.io/app', 'a.r.io/other', 'b.r.io/app']) await ask(image);
      assert.equal(runs.length, runsWanted, cacheKeyType);
    }
  });

  it('caches the response of a credential plugin for the duration it returns, or the default', async () => {
    for (const [cacheDuration, keptMs] of [
      ['0s', 0],
      ['10s', 10_000],
      [undefined, 60_000],
    ] as const) {
      const { clock, ask, runs } = rigOf({ reply: () => answer({ cacheDuration }) });
      await ask('a.r.io/app');
      if (keptMs > 0) {
        await clock.advance(keptMs - 1);
        await ask('a.r.io/app');
        assert.equal(runs.length, 1);
      }
      await clock.advance(2);
      await ask('a.r.io/app');
      assert.equal(runs.length, 2, String(cacheDuration));
    }
  });

  it('a credential plugin that fails or returns invalid output provides no credentials, and its output is not logged', async () => {
    for (const [reply, why] of [
      ['sesame', /must be JSON/],
      [answer({ apiVersion: 'credentialprovider.kubelet.k8s.io/v1beta1' }), /apiVersion/],
      [answer({ kind: 'Other' }), /kind/],
      [answer({ cacheKeyType: 'sesame' }), /cacheKeyType/],
      [answer({ cacheDuration: 'sesame' }), /cacheDuration/],
      [answer({ auth: { r: 'sesame' } }), /login/],
      [answer({ more: 'sesame' }), /other fields/],
    ] as const) {
      const { ask, logs, counted } = rigOf({ reply: () => reply });
      assert.equal(await ask('a.r.io/app'), undefined);
      const reported = JSON.stringify([...logs.records]);
      assert.match(reported, why);
      assert.doesNotMatch(reported, /sesame/);
      assert.deepEqual(counted, ['ecr failed']);
    }
    const { ask, logs } = rigOf({ exitCode: 3 });
    assert.equal(await ask('a.r.io/app'), undefined);
    assert.match(JSON.stringify([...logs.records]), /exited with 3: oh/);
  });

  it('passes a service account token to a credential plugin if configured, and caches the response for that account only', async () => {
    const requests: string[] = [];
    const serviceAccounts: ServiceAccounts = {
      get: async (_namespace, name) => ({ uid: `uid-${name}`, annotations: { 'r.io/id': name, other: 'x' } }),
      async token({ serviceAccount, audience, pod: owner }) {
        requests.push(`${serviceAccount} ${audience} ${owner.metadata.name}`);
        return `token-${serviceAccount}`;
      },
    };
    const { ask, runs } = rigOf({ changed: { tokenAttributes: tokens }, serviceAccounts });
    const found = await ask('a.r.io/app', ofAccount('one'));
    await ask('a.r.io/app', ofAccount('one'));
    await ask('a.r.io/app', ofAccount('two'));
    assert.deepEqual(requests, ['one registry web', 'one registry web', 'two registry web']);
    assert.deepEqual(found?.source, {
      kind: 'service-account',
      uid: 'uid-one',
      namespace: 'default',
      name: 'one',
    });
    assert.deepEqual(
      runs
        .map(({ input }) => JSON.parse(input))
        .map((request) => [request.serviceAccountToken, request.serviceAccountAnnotations]),
      [
        ['token-one', { 'r.io/id': 'one' }],
        ['token-two', { 'r.io/id': 'two' }],
      ],
    );
    assert.equal(await ask('a.r.io/app', pod), undefined, 'a pod without a service account is skipped');
  });

  it('rejects a credential plugin that returns the token as password unless its cache type is Token', async () => {
    const serviceAccounts: ServiceAccounts = {
      get: async () => ({ uid: 'u', annotations: { 'r.io/id': '' } }),
      token: async () => 'sesame',
    };
    for (const cacheType of ['ServiceAccount', 'Token']) {
      const changed = { tokenAttributes: { ...tokens, cacheType } };
      const { ask, logs } = rigOf({ changed, serviceAccounts });
      const found = await ask('a.r.io/app', ofAccount('one'));
      assert.equal(found === undefined, cacheType === 'ServiceAccount');
      assert.doesNotMatch(JSON.stringify([...logs.records]), /sesame/);
    }
  });

  it('a credential plugin that needs a token provides nothing on a node without an API server; the reason is logged', async () => {
    const { ask, logs } = rigOf({ changed: { tokenAttributes: tokens } });
    assert.equal(await ask('a.r.io/app', ofAccount('one')), undefined);
    assert.match(
      JSON.stringify([...logs.records]),
      /service account default\/one as this node has no API server/,
    );
  });
});

const { signal } = new AbortController();

test('metrics count credential plugin runs and expose the fingerprint of the plugin configuration', async () => {
  const registry = new MetricRegistry({ onError: assert.ifError });
  const observer = pluginMetrics(registry, 'sha256:abc');
  observer.ran('ecr', 20, 'worked');
  observer.ran('ecr', 20, 'failed');
  const text = await registry.expose(signal);
  assert.match(text, /^kubelet_credential_provider_config_info\{hash="sha256:abc"\} 1$/m);
  assert.match(text, /^kubelet_credential_provider_plugin_duration_count\{plugin_name="ecr"\} 2$/m);
  assert.match(text, /^kubelet_credential_provider_plugin_errors_total\{plugin_name="ecr"\} 1$/m);
});
