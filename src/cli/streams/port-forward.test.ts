import assert from 'node:assert/strict';
import { it } from 'node:test';
import { aPod } from '../../../test/fakes/pods.ts';
import { readForwardedPort } from './port-forward.ts';

const pod = aPod({
  spec: {
    containers: [{ name: 'main', ports: [{ name: 'http', containerPort: 80 }] }],
    initContainers: [
      { name: 'side', restartPolicy: 'Always', ports: [{ name: 'metrics', containerPort: 9090 }] },
      { name: 'once', ports: [{ name: 'gone', containerPort: 1 }] },
    ],
  },
});

it('finds a port by its name in containers and sidecars, not in other init containers', () => {
  assert.deepEqual(readForwardedPort('8080:http', pod), { local: 8080, remote: 80 });
  assert.deepEqual(readForwardedPort(':metrics', pod), { local: 0, remote: 9090 });
  assert.throws(() => readForwardedPort(':gone', pod), { code: 'CLI_USAGE' });
});
