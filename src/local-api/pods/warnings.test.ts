import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LocalPods } from '../../../test/fakes/local-pods.ts';
import type { JsonObject } from '../../api/index.ts';

function warningsAbout(name: string, spec: JsonObject): readonly string[] {
  using api = new LocalPods();
  api.do({ verb: 'create', body: { metadata: { name }, spec } });
  return api.warnings;
}

test('does not warn about a plain pod', () => {
  assert.deepEqual(warningsAbout('a', { containers: [{ name: 'm', image: 'x' }] }), []);
});

test('warns about questionable names, ports, environment variables and quantities', () => {
  const env = [
    { name: 'A', value: '1' },
    { name: 'A', value: '2' },
    { name: 'A', value: '$(A)3' },
  ];
  const first = {
    name: 'm',
    image: 'x',
    env,
    ports: [
      { containerPort: 80, name: 'http' },
      { containerPort: 80, hostPort: 1 },
    ],
    resources: { requests: { memory: '1500m' } },
  };
  const second = {
    name: 'n',
    image: 'x',
    ports: [{ containerPort: 80 }, { containerPort: 81, name: 'http' }],
  };
  const nodeSelector = { 'beta.kubernetes.io/os': 'linux' };
  assert.deepEqual(warningsAbout('a.b', { containers: [first, second], nodeSelector }), [
    "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended: [must not contain dots]",
    'spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use "kubernetes.io/os" instead',
    'spec.containers[0].resources.requests[memory]: fractional byte value "1500m" is invalid, must be an integer',
    'spec.containers[0].env[1]: hides previous definition of "A", which may be dropped when using apply',
    'spec.containers[0].ports[1]: overlapping port definition with spec.containers[0].ports[0]',
    'spec.containers[1].ports[0]: duplicate port definition with spec.containers[0].ports[0]',
    'spec.containers[1].ports[0]: overlapping port definition with spec.containers[0].ports[1]',
    'spec.containers[1].ports[1]: duplicate port name "http" with spec.containers[0].ports[0], services and probes that select ports by name will use spec.containers[0].ports[0]',
  ]);
});

test('warns about duplicates, empty selectors and removed volume types', () => {
  const reported = warningsAbout('a', {
    containers: [{ name: 'm', image: 'x' }],
    hostAliases: [{ ip: '1.1.1.1' }, { ip: '1.1.1.1' }],
    imagePullSecrets: [{ name: 'a' }, { name: 'a' }, {}],
    topologySpreadConstraints: [
      {
        maxSkew: 1,
        topologyKey: 'failure-domain.beta.kubernetes.io/zone',
        whenUnsatisfiable: 'ScheduleAnyway',
      },
    ],
    volumes: [{ name: 'v', rbd: { monitors: ['a'], image: 'b' } }],
  });
  const at = 'spec.topologySpreadConstraints[0]';
  assert.deepEqual(reported, [
    `${at}.topologyKey: failure-domain.beta.kubernetes.io/zone is deprecated since v1.17; use "topology.kubernetes.io/zone" instead`,
    `${at}.labelSelector: a null labelSelector results in matching no pod`,
    'spec.volumes[0].rbd: deprecated in v1.28, non-functional in v1.31+',
    'spec.hostAliases[1].ip: duplicate ip "1.1.1.1"',
    'spec.imagePullSecrets[1].name: duplicate name "a"',
    'spec.imagePullSecrets[2].name: invalid empty name ""',
  ]);
});
