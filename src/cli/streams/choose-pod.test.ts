import assert from 'node:assert/strict';
import { describe, it, test } from 'node:test';
import { aPod } from '../../../test/fakes/pods.ts';
import type { ContainerStatus } from '../../kinds/index.ts';
import { type Pod, podUid } from '../../pods/index.ts';
import { chooseContainer, choosePod, whyNotRunning } from './choose-pod.ts';
import { readForwardedPort } from './port-forward.ts';

function podOf(name: string, namespace = 'default', containers: readonly object[] = [{ name: 'main' }]): Pod {
  const metadata = { name, namespace, uid: podUid(`uid-${name}-${namespace}`) };
  return { metadata, spec: { nodeName: 'node', containers } as Pod['spec'], status: {} };
}

const pods = [podOf('web-node'), podOf('db'), podOf('db', 'other'), podOf('web')];

test('finds a pod by name, name_namespace, UID, or the name in its manifest', () => {
  assert.equal(choosePod(pods, 'web', undefined), pods[3]);
  assert.equal(choosePod(pods, 'db_other', undefined), pods[2]);
  assert.equal(choosePod(pods, 'uid-db-default', undefined), pods[1]);
  assert.equal(choosePod(pods.slice(0, 3), 'web', undefined), pods[0]);
  assert.equal(choosePod(pods.slice(0, 3), 'web_default', undefined), pods[0]);
  assert.equal(choosePod(pods, 'db', 'other'), pods[2]);
});

test('rejects a name that matches several pods, or none', () => {
  assert.throws(() => choosePod(pods, 'db', undefined), { message: /db_default, db_other/ });
  assert.throws(() => choosePod(pods, 'nope', undefined), {
    code: 'STREAM_NO_POD',
    message: /there are: web-node_default/,
  });
  assert.throws(() => choosePod(pods, 'web', 'other'), { message: /in the namespace other/ });
});

test('chooses the named container, else the one in the default-container annotation, else the first', () => {
  const pair = podOf('pair', 'default', [{ name: 'one' }, { name: 'two', tty: true }]);
  assert.equal(chooseContainer(pair, 'two').tty, true);
  assert.equal(chooseContainer(pair, 'two').notice, undefined);
  assert.equal(chooseContainer(pair, undefined).notice, 'Defaulted container "one" out of: one, two');
  const annotations = { 'kubectl.kubernetes.io/default-container': 'two' };
  const annotated = { ...pair, metadata: { ...pair.metadata, annotations } };
  assert.equal(chooseContainer(annotated, undefined).name, 'two');
  assert.throws(() => chooseContainer(pair, 'three'), { message: /it has: one, two/ });
});

test("accepts port numbers, pairs of port numbers, and names of the pod's ports", () => {
  const pod = podOf('web', 'default', [{ name: 'main', ports: [{ name: 'http', containerPort: 8080 }] }]);
  assert.deepEqual(readForwardedPort('80', pod), { local: 80, remote: 80 });
  assert.deepEqual(readForwardedPort('8000:80', pod), { local: 8000, remote: 80 });
  assert.deepEqual(readForwardedPort(':80', pod), { local: 0, remote: 80 });
  assert.deepEqual(readForwardedPort('0:80', pod), { local: 0, remote: 80 });
  assert.deepEqual(readForwardedPort('9:http', pod), { local: 9, remote: 8080 });
  assert.deepEqual(readForwardedPort('http', pod), { local: 8080, remote: 8080 });
  for (const wrong of ['', ':', '80:', '70000', 'x:80', '1:2:3', '0', '80:nope', '-1']) {
    assert.throws(() => readForwardedPort(wrong, pod), { code: 'CLI_USAGE' }, wrong);
  }
});

function why(status: Partial<ContainerStatus>): string | undefined {
  const whole = { name: 'main', image: '', imageID: '', ready: false, restartCount: 0, ...status };
  return whyNotRunning(aPod({ status: { containerStatuses: [whole] } }), 'main');
}

describe('whyNotRunning', () => {
  it('whyNotRunning returns undefined for a running container', () => {
    assert.equal(why({ state: { running: {} } }), undefined);
  });

  it('whyNotRunning returns the waiting reason with the last termination', () => {
    assert.equal(
      why({
        state: { waiting: { reason: 'CrashLoopBackOff', message: 'back-off 10s' } },
        lastState: { terminated: { exitCode: 3, reason: 'Error' } },
      }),
      'the container main is waiting to be started: CrashLoopBackOff: back-off 10s; it last terminated with exit code 3 (Error)',
    );
    assert.equal(why({}), 'the container main is waiting to be started');
  });

  it('whyNotRunning returns how the container terminated', () => {
    const state = { terminated: { exitCode: 0, reason: 'Completed' } };
    assert.equal(why({ state }), 'the container main has terminated with exit code 0 (Completed)');
  });
});
