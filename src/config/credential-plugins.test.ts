import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { memoryConfigFiles } from '../../test/fakes/memory-config-files.ts';
import { readCredentialPlugins } from './credential-plugins.ts';

const head = 'apiVersion: kubelet.config.k8s.io/v1\nkind: CredentialProviderConfig\nproviders:\n';
const sound = `- name: ecr
  matchImages: ["*.r.io"]
  defaultCacheDuration: 10m
  apiVersion: credentialprovider.kubelet.k8s.io/v1
`;

function read(
  files: Readonly<Record<string, string>>,
  serviceAccountTokens: 'allowed' | 'gated-off' = 'allowed',
) {
  return readCredentialPlugins(
    {
      configPath: '/etc/plugins',
      binDir: '/bin',
      files: memoryConfigFiles(files),
      serviceAccountTokens,
      isExecutable: async (path) => path !== '/bin/absent',
    },
    new AbortController().signal,
  );
}

async function refusal(text: string, tokens?: 'allowed' | 'gated-off'): Promise<string> {
  return await read({ '/etc/plugins': text }, tokens).then(
    () => 'accepted',
    (error: Error) => error.message,
  );
}

describe('credential provider configuration', () => {
  it('reads the credential provider configuration from one file', async () => {
    const more = '  args: [get]\n  env: [{name: A, value: b}]\n';
    const [plugin, ...rest] = await read({ '/etc/plugins': head + sound + more });
    assert.deepEqual(rest, []);
    assert.deepEqual(plugin, {
      name: 'ecr',
      matchImages: ['*.r.io'],
      defaultCacheDurationMs: 600_000,
      apiVersion: 'credentialprovider.kubelet.k8s.io/v1',
      args: ['get'],
      env: [{ name: 'A', value: 'b' }],
      tokenAttributes: undefined,
    });
  });

  it('reads the credential provider configuration from the files of a directory, sorted by name', async () => {
    const named = (name: string) => head + sound.replace('ecr', name);
    const plugins = await read({
      '/etc/plugins/b.yml': named('second'),
      '/etc/plugins/a.json': JSON.stringify({
        apiVersion: 'kubelet.config.k8s.io/v1beta1',
        kind: 'CredentialProviderConfig',
        providers: [
          {
            name: 'first',
            matchImages: ['r.io'],
            defaultCacheDuration: '0s',
            apiVersion: 'credentialprovider.kubelet.k8s.io/v1beta1',
          },
        ],
      }),
      '/etc/plugins/c.yaml': named('third'),
      '/etc/plugins/notes.txt': 'nothing',
    });
    assert.deepEqual(
      plugins.map(({ name }) => name),
      ['first', 'second', 'third'],
    );
    await assert.rejects(read({ '/etc/plugins/notes.txt': '' }), /must hold at least one file/);
    await assert.rejects(
      read({ '/etc/plugins/a.yaml': named('same'), '/etc/plugins/b.yaml': named('same') }),
      /b\.yaml.*used once only: current value is "same"/,
    );
  });

  it('requests service account tokens if a provider has token attributes', async () => {
    const attributes =
      '  tokenAttributes: {serviceAccountTokenAudience: r, cacheType: Token, requireServiceAccount: false}\n';
    const [plugin] = await read({ '/etc/plugins': head + sound + attributes });
    assert.deepEqual(plugin?.tokenAttributes, {
      serviceAccountTokenAudience: 'r',
      cacheType: 'Token',
      requireServiceAccount: false,
      requiredServiceAccountAnnotationKeys: [],
      optionalServiceAccountAnnotationKeys: [],
    });
    assert.match(await refusal(head + sound + attributes, 'gated-off'), /needs the feature gate/);
    const beta = (head + sound + attributes).replace('k8s.io/v1\n  tok', 'k8s.io/v1beta1\n  tok');
    assert.match(
      await refusal(beta),
      /tokenAttributes: needs apiVersion credentialprovider.kubelet.k8s.io\/v1/,
    );
  });

  it('fails the start if the credential provider configuration is invalid, and reports every problem with its position', async () => {
    const cases: readonly (readonly [string, RegExp])[] = [
      ['kind: Other', /kind: must be CredentialProviderConfig/],
      [head.replace('providers:', 'providers: []'), /must name at least one plugin/],
      [head + sound.replace('ecr', 'a/b'), /:4:\d+: providers\[0\]\.name: must be the name of a file/],
      [head + sound.replace('ecr', '".."'), /must be the name of a file/],
      [head + sound.replace('ecr', 'absent'), /must be the name of a program: \/bin\/absent is none/],
      [head + sound + sound, /used once only/],
      [head + sound.replace('io/v1', 'io/v3'), /apiVersion: must be .*current value is/],
      [head + sound.replace('["*.r.io"]', '[]'), /matchImages: must name at least one image/],
      [head + sound.replace('*.r.io', 'r io'), /matchImages\[0\]: must be HOST/],
      [
        head + sound.replace('  defaultCacheDuration: 10m\n', ''),
        /plugins:4:\d+: providers\[0\]\.defaultCacheDuration: must be given/,
      ],
      [head + sound.replace('10m', '-1s'), /defaultCacheDuration/],
      [`${head}${sound}  arg: [a]\n`, /arg: is not a known field/],
      [
        `${head}${sound}  tokenAttributes: {requireServiceAccount: false, requiredServiceAccountAnnotationKeys: [a b, c, c], optionalServiceAccountAnnotationKeys: [c]}\n`,
        /Audience: must be given[\s\S]*cacheType[\s\S]*|both required and optional: c/,
      ],
    ];
    for (const [text, why] of cases) assert.match(await refusal(text), why, text);
    await assert.rejects(read({}), /cannot be read/);
  });
});
