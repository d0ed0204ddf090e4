import assert from 'node:assert/strict';
import { describe, it, test } from 'node:test';
import fc from 'fast-check';
import { aPod } from '../../../test/fakes/pods.ts';
import type { ConfigMap, Container, EnvFromSource, EnvVar, Secret, Service } from '../../kinds/index.ts';
import { KubelingError } from '../../lib/index.ts';
import { annotations, type Pod } from '../../pods/index.ts';
import {
  containerEnvironment,
  type EnvironmentInputs,
  expandProbeCommand,
  type ObjectLookup,
  readEnvFile,
  textLookup,
} from './environment.ts';
import { ExpansionBudget } from './expansion.ts';
import { serviceVariables } from './service-variables.ts';

const { signal } = new AbortController();
const configMaps: Record<string, ConfigMap> = {
  'default/settings': { data: { Z: 'last', A: 'first' } },
};
const secrets: Record<string, Secret> = {
  'default/keys': {
    data: {
      TOKEN: Buffer.from('s3cret').toString('base64'),
      RAW: Buffer.from([0xff, 0xfe]).toString('base64'),
    },
  },
};
const objects: ObjectLookup = {
  configMap: async (namespace, name) => configMaps[`${namespace}/${name}`],
  secret: async (namespace, name) => secrets[`${namespace}/${name}`],
};
const inputs: EnvironmentInputs = {
  objects,
  services: { state: 'none' },
  allocatable: new Map(),
  podIps: ['10.0.0.7'],
  hostIps: ['192.0.2.1'],
};
const linked = aPod({ spec: { enableServiceLinks: true } });

async function made(
  parts: { env?: readonly EnvVar[]; envFrom?: readonly EnvFromSource[] },
  other: Partial<EnvironmentInputs> = {},
  pod: Pod = linked,
): Promise<string[]> {
  const container: Container = { name: 'main', ...parts };
  const variables = await containerEnvironment(
    pod,
    container,
    { ...inputs, ...other },
    new ExpansionBudget(),
    signal,
  );
  return variables.map(({ name, value }) => `${name}=${value}`);
}

test('environment variables keep their declared order and can refer to earlier ones', async () => {
  const env = [
    { name: 'B', value: 'b' },
    { name: 'A', value: '$(B)-$(LATER)-$$(B)' },
    { name: 'LATER', value: 'x' },
    { name: 'EMPTY' },
  ];
  assert.deepEqual(await made({ env }), ['B=b', 'A=b-$(LATER)-$(B)', 'LATER=x', 'EMPTY=']);
});

test('variables of envFrom come first, sorted by key; declared variables of the same name override them in place', async () => {
  const envFrom = [{ configMapRef: { name: 'settings' } }, { prefix: 'S_', secretRef: { name: 'keys' } }];
  const env = [{ name: 'A', value: 'own $(S_TOKEN)' }];
  assert.deepEqual(
    (await made({ envFrom, env })).filter((line) => !line.startsWith('S_RAW')),
    ['A=own s3cret', 'Z=last', 'S_TOKEN=s3cret'],
  );
});

test('a later envFrom source overrides an earlier one', async () => {
  const lookup = {
    ...objects,
    secret: async () => ({ data: { A: Buffer.from('secret').toString('base64') } }),
  };
  const envFrom = [{ configMapRef: { name: 'settings' } }, { secretRef: { name: 'keys' } }];
  assert.deepEqual(await made({ envFrom }, { objects: lookup }), ['A=secret', 'Z=last']);
});

test('preserves binary values of a Secret in variables, also in variables that refer to them with $(NAME)', async () => {
  const env = [
    { name: 'RAW', valueFrom: { secretKeyRef: { name: 'keys', key: 'RAW' } } },
    { name: 'COPY', value: 'é$(RAW)' },
  ];
  const variables = await containerEnvironment(
    linked,
    { name: 'main', env },
    inputs,
    new ExpansionBudget(),
    signal,
  );
  assert.deepEqual(variables[0]?.value, Buffer.from([0xff, 0xfe]));
  assert.deepEqual(variables[1]?.value, Buffer.from([0xc3, 0xa9, 0xff, 0xfe]));
});

test('resolves variables from single keys, pod fields and resources', async () => {
  const env = [
    { name: 'K', valueFrom: { configMapKeyRef: { name: 'settings', key: 'Z' } } },
    { name: 'IP', valueFrom: { fieldRef: { fieldPath: 'status.podIP' } } },
    { name: 'CPU', valueFrom: { resourceFieldRef: { resource: 'requests.cpu' } } },
    { name: 'NONE', valueFrom: {} },
  ];
  assert.deepEqual(await made({ env }), ['K=last', 'IP=10.0.0.7', 'CPU=0', 'NONE=']);
});

test('a missing key that is optional sets no variable', async () => {
  const env = [
    { name: 'A', valueFrom: { configMapKeyRef: { name: 'none', key: 'x', optional: true } } },
    { name: 'B', valueFrom: { secretKeyRef: { name: 'keys', key: 'none', optional: true } } },
    { name: 'C', value: '$(A)' },
  ];
  const envFrom = [{ configMapRef: { name: 'none', optional: true } }];
  assert.deepEqual(await made({ env, envFrom }), ['C=$(A)']);
});

const ref = (valueFrom: EnvVar['valueFrom']) => ({ env: [{ name: 'X', valueFrom }] });
const failures: readonly [string, Parameters<typeof made>[0], Partial<EnvironmentInputs>, string][] = [
  [
    'a missing config map',
    ref({ configMapKeyRef: { name: 'none', key: 'k' } }),
    {},
    'configmap "none" not found',
  ],
  ['a missing secret', { envFrom: [{ secretRef: { name: 'none' } }] }, {}, 'secret "none" not found'],
  [
    'a missing key of a config map',
    ref({ configMapKeyRef: { name: 'settings', key: 'k' } }),
    {},
    "couldn't find key k in ConfigMap default/settings",
  ],
  [
    'a missing key of a secret',
    ref({ secretKeyRef: { name: 'keys', key: 'k' } }),
    {},
    "couldn't find key k in Secret default/keys",
  ],
  [
    'a config map without an API client',
    { envFrom: [{ configMapRef: { name: 'settings' } }] },
    { objects: undefined },
    "couldn't get configMap default/settings, no kubeClient defined",
  ],
  [
    'a secret without an API client',
    ref({ secretKeyRef: { name: 'keys', key: 'k', optional: true } }),
    { objects: undefined },
    "couldn't get secret default/keys, no kubeClient defined",
  ],
  [
    'a value with a NUL byte',
    { envFrom: [{ secretRef: { name: 'keys' } }] },
    {
      objects: {
        ...objects,
        secret: async () => ({ data: { NUL: Buffer.from('a\0b').toString('base64') } }),
      },
    },
    'environment variable "NUL" has a NUL byte, which no process can be given',
  ],
  [
    'services that have not been read',
    {},
    { services: { state: 'unread' } },
    'services have not yet been read at least once, cannot construct envvars',
  ],
  [
    'a missing volume of a file key',
    ref({ fileKeyRef: { volumeName: 'v', path: 'f', key: 'k' } }),
    {},
    'cannot find the volume "v" referenced by FileKeyRef',
  ],
  [
    'an env file that cannot be parsed',
    ref({ fileKeyRef: { volumeName: 'v', path: 'f', key: 'k' } }),
    { volumeFile: async () => 'what' },
    "couldn't parse env file",
  ],
  [
    'an env file without the key',
    ref({ fileKeyRef: { volumeName: 'v', path: 'f', key: 'k' } }),
    { volumeFile: async () => "x='1'" },
    'environment variable key "k" not found in file "f"',
  ],
];
for (const [what, parts, other, message] of failures) {
  test(`a container with an invalid variable fails: ${what}`, async () => {
    await assert.rejects(made(parts, other), { code: 'CONTAINER_CONFIG', message });
  });
}

test('reads a variable from an env file in a volume', async () => {
  const volumeFile = async (volume: string, path: string) => `K='${volume}/${path}'`;
  const file = { volumeName: 'v', path: 'f', key: 'K' };
  assert.deepEqual(await made(ref({ fileKeyRef: file }), { volumeFile }), ['X=v/f']);
  assert.deepEqual(
    await made(ref({ fileKeyRef: { ...file, key: 'Z', optional: true } }), { volumeFile }),
    [],
  );
});

test('rejects a pod without enableServiceLinks', async () => {
  await assert.rejects(made({}, {}, aPod()), {
    message: 'nil pod.spec.enableServiceLinks encountered, cannot construct envvars',
  });
});

test('fails the container when a ConfigMap or Secret cannot be read, even if it is optional', async () => {
  const away = new KubelingError('OBJECT_UNSYNCED', 'failed to sync secret cache');
  const lookup: ObjectLookup = { ...objects, secret: () => Promise.reject(away) };
  const parts = { envFrom: [{ secretRef: { name: 'keys', optional: true } }] };
  await assert.rejects(made(parts, { objects: lookup }), away);
});

test('envFrom sets variables for keys of any form, with the prefix', async () => {
  const lookup: ObjectLookup = { ...objects, configMap: async () => ({ data: { 'a.b-c': '1', '2': '3' } }) };
  const envFrom = [{ prefix: 'P_', configMapRef: { name: 'settings' } }];
  assert.deepEqual(await made({ envFrom }, { objects: lookup }), ['P_2=3', 'P_a.b-c=1']);
});

test('envFrom ignores binary data of a ConfigMap', async () => {
  const lookup: ObjectLookup = {
    ...objects,
    configMap: async () => ({ data: { A: '1' }, binaryData: { B: 'AAE=' } }),
  };
  assert.deepEqual(await made({ envFrom: [{ configMapRef: { name: 'settings' } }] }, { objects: lookup }), [
    'A=1',
  ]);
});

test('reads each ConfigMap and Secret once for all variables of a container', async () => {
  let reads = 0;
  const counting: ObjectLookup = {
    ...objects,
    configMap: async (namespace, name, inner) => {
      reads++;
      return await objects.configMap(namespace, name, inner);
    },
  };
  const key = (name: string, k: string) => ({
    name,
    valueFrom: { configMapKeyRef: { name: 'settings', key: k } },
  });
  await made(
    { env: [key('A', 'A'), key('B', 'Z')], envFrom: [{ configMapRef: { name: 'settings' } }] },
    { objects: counting },
  );
  assert.equal(reads, 1);
});

const service = (name: string, namespace: string, spec: Service['spec']): Service => ({
  metadata: { name, namespace },
  spec,
});
const services = [
  service('web-api', 'default', {
    clusterIP: '10.1.1.1',
    ports: [
      { name: 'my-http', port: 80 },
      { name: 'dns', port: 53, protocol: 'UDP' },
    ],
  }),
  service('kubernetes', 'default', { clusterIP: 'fd00::1', ports: [{ port: 443 }] }),
  service('headless', 'default', { clusterIP: 'None', ports: [{ port: 1 }] }),
  service('elsewhere', 'other', { clusterIP: '10.1.1.2', ports: [{ port: 1 }] }),
];
const api = [
  'KUBERNETES_SERVICE_HOST=fd00::1',
  'KUBERNETES_SERVICE_PORT=443',
  'KUBERNETES_PORT=tcp://[fd00::1]:443',
  'KUBERNETES_PORT_443_TCP=tcp://[fd00::1]:443',
  'KUBERNETES_PORT_443_TCP_PROTO=tcp',
  'KUBERNETES_PORT_443_TCP_PORT=443',
  'KUBERNETES_PORT_443_TCP_ADDR=fd00::1',
];

test('sets variables for services of the namespace and for the API service, sorted by service', async () => {
  assert.deepEqual(await made({}, { services: { state: 'read', services } }), [
    ...api,
    'WEB_API_SERVICE_HOST=10.1.1.1',
    'WEB_API_SERVICE_PORT=80',
    'WEB_API_SERVICE_PORT_MY_HTTP=80',
    'WEB_API_SERVICE_PORT_DNS=53',
    'WEB_API_PORT=tcp://10.1.1.1:80',
    'WEB_API_PORT_80_TCP=tcp://10.1.1.1:80',
    'WEB_API_PORT_80_TCP_PROTO=tcp',
    'WEB_API_PORT_80_TCP_PORT=80',
    'WEB_API_PORT_80_TCP_ADDR=10.1.1.1',
    'WEB_API_PORT_53_UDP=udp://10.1.1.1:53',
    'WEB_API_PORT_53_UDP_PROTO=udp',
    'WEB_API_PORT_53_UDP_PORT=53',
    'WEB_API_PORT_53_UDP_ADDR=10.1.1.1',
  ]);
});

test('sets only variables of the API service when enableServiceLinks is false', async () => {
  const pod = aPod({ spec: { enableServiceLinks: false } });
  assert.deepEqual(await made({}, { services: { state: 'read', services } }, pod), api);
});

test('declared variables can refer to and override service variables', async () => {
  const env = [
    { name: 'URL', value: '$(KUBERNETES_PORT)' },
    { name: 'KUBERNETES_SERVICE_PORT', value: '1' },
  ];
  const lines = await made({ env }, { services: { state: 'read', services: services.slice(1, 2) } });
  assert.deepEqual(lines.slice(0, 3), [
    'URL=tcp://[fd00::1]:443',
    'KUBERNETES_SERVICE_PORT=1',
    'KUBERNETES_SERVICE_HOST=fd00::1',
  ]);
});

test('a static pod does not wait for services', () => {
  const pod = aPod({
    metadata: { annotations: { [annotations.source]: 'file' } },
    spec: { enableServiceLinks: true },
  });
  assert.deepEqual([...serviceVariables(pod, { state: 'unread' })], []);
});

test('command and arguments get the values of variables as text', async () => {
  const variables = await containerEnvironment(
    linked,
    { name: 'm', env: [{ name: 'A', value: 'é' }] },
    inputs,
    new ExpansionBudget(),
    signal,
  );
  assert.equal(textLookup(variables)('A'), 'é');
  assert.equal(textLookup(variables)('B'), undefined);
});

test('expands only variables with literal values in the command of a probe', () => {
  const env = [
    { name: 'A', value: '$(B)' },
    { name: 'B', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
  ];
  assert.deepEqual(expandProbeCommand(['$(A)', '[$(B)]', '$(C)'], { name: 'm', env }), [
    '$(B)',
    '[]',
    '$(C)',
  ]);
});

describe('size limits of variables and commands', () => {
  const tooLong = {
    code: 'CONTAINER_CONFIG',
    message:
      'environment variables, command and arguments must not be longer than 6291456 bytes together after expansion',
  };
  const doubling = (steps: number) => [
    { name: 'A0', value: 'x'.repeat(1_000) },
    ...Array.from({ length: steps }, (_, index) => ({
      name: `A${index + 1}`,
      value: `$(A${index})$(A${index})`,
    })),
  ];

  it('rejects variables whose value doubles with each reference before building them', async () => {
    await assert.rejects(made({ env: doubling(100) }), tooLong);
  });

  it('accepts the largest environment a process can be started with', async () => {
    assert.equal((await made({ env: doubling(11) })).length, 12);
  });

  it("the size limit counts each copy of a secret's value", async () => {
    const large = Buffer.alloc(1_000_000, 'x').toString('base64');
    const lookup: ObjectLookup = { ...objects, secret: async () => ({ data: { key: large } }) };
    const env = Array.from({ length: 7 }, (_, index) => ({
      name: `A${index}`,
      valueFrom: { secretKeyRef: { name: 'large', key: 'key' } },
    }));
    await assert.rejects(made({ env }, { objects: lookup }), tooLong);
  });

  it('limits how much variables can add to the command of a probe', () => {
    const env = [{ name: 'A', value: 'x'.repeat(1_000) }];
    assert.throws(() => expandProbeCommand(['$(A)'.repeat(200)], { name: 'm', env }), {
      code: 'CONTAINER_CONFIG',
    });
    const literal = 'x'.repeat(1_000_000);
    assert.deepEqual(expandProbeCommand([literal, '$(A)'], { name: 'm', env }), [literal, 'x'.repeat(1_000)]);
  });
});

const found: readonly [string, string | undefined][] = [
  ["KEY='value'", 'value'],
  ["KEY='value'\n", 'value'],
  ["KEY='value'\r\n", 'value'],
  ["  KEY='value' # why", 'value'],
  ["# note\n\n \t\nOTHER='x'\nKEY='v=1 # $X \"q\"'\n", 'v=1 # $X "q"'],
  ["KEY='two\nlines'\nOTHER='x'", 'two\nlines'],
  ["KEY=''", ''],
  ["KEY= 'value'\n", ''],
  ["KEY='first'\nKEY='second'", 'first'],
  ["OTHER='KEY='", undefined],
  ["KEY='value'\nnonsense", 'value'],
  ['', undefined],
];
for (const [text, expected] of found) {
  test(`env file: reads KEY from ${JSON.stringify(text)} as ${JSON.stringify(expected)}`, () =>
    assert.equal(readEnvFile(text, 'KEY'), expected));
}

for (const text of [
  'KEY',
  "KEY ='v'",
  'KEY=v',
  'KEY="v"',
  "KEY='v",
  "='v'",
  "KEY='v'x",
  'KEY=',
  "nonsense\nKEY='v'",
]) {
  test(`env file: rejects ${JSON.stringify(text)}`, () => {
    assert.throws(() => readEnvFile(text, 'KEY'), {
      code: 'CONTAINER_CONFIG',
      message: "couldn't parse env file",
    });
  });
}

test('env file: parses any text or rejects it with CONTAINER_CONFIG', () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom('K', '=', "'", '\n', ' ', '#', 'x') }), (text) => {
      try {
        readEnvFile(text, 'K');
      } catch (error) {
        assert.ok(error instanceof KubelingError);
      }
    }),
  );
});
