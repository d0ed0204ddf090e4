import assert from 'node:assert/strict';
import { test } from 'node:test';
import { aPod } from '../../../test/fakes/pods.ts';
import {
  containerIdOfLogLink,
  containerLogDirectory,
  containerLogLink,
  containerLogPath,
  podLogDirectory,
  podUidOfLogDirectory,
  restartCountFromLogs,
} from './log-paths.ts';

const main = { name: 'main' };

test("a pod's log directory is named by namespace, name and UID", () => {
  assert.equal(podLogDirectory('/var/log/pods', aPod()), '/var/log/pods/default_web_uid-1');
  assert.equal(containerLogDirectory('/var/log/pods', aPod(), main), '/var/log/pods/default_web_uid-1/main');
  assert.equal(containerLogPath(main, 3), 'main/3.log');
});

test('reads the UID from a log directory name, also in the old format', () => {
  assert.equal(podUidOfLogDirectory('default_web_uid-1'), 'uid-1');
  for (const uid of ['0123456789abcdef0123456789abcdef', '6a1f2b3c-0000-4000-8000-0123456789ab'])
    assert.equal(podUidOfLogDirectory(uid), uid);
});

test("ignores directories that are not named like a pod's log directory", () => {
  for (const name of ['lost+found', 'archive', 'web_uid-1', 'a_b_c_d', 'default_web_', ''])
    assert.equal(podUidOfLogDirectory(name), undefined, name);
});

const counts: readonly [readonly string[], number][] = [
  [[], 0],
  [['0.log'], 1],
  [['0.log', '10.log', '9.log'], 11],
  [['3.log.20260101-000000.gz'], 4],
  [['notes.txt', 'x1.log', '.log'], 0],
];
for (const [names, expected] of counts) {
  test(`after the logs [${names.join(', ')}] the restart count is ${expected}`, () => {
    assert.equal(restartCountFromLogs(names), expected);
  });
}

const owner = { podName: 'web', namespace: 'default', containerName: 'main', containerId: 'abcdef012345' };

test('the name of a log link contains pod, namespace, container and ID', () => {
  const link = containerLogLink('/var/log/containers', owner);
  assert.equal(link, '/var/log/containers/web_default_main-abcdef012345.log');
  assert.equal(containerIdOfLogLink('web_default_main-abcdef012345.log'), 'abcdef012345');
});

test('the name of a log link is limited to the length of a file name', () => {
  const link = containerLogLink('/l', { ...owner, podName: 'p'.repeat(253) });
  assert.equal(link.length - '/l/'.length, 255);
  assert.ok(link.endsWith('.log'));
  assert.equal(containerIdOfLogLink(link.slice('/l/'.length)), undefined);
});

test('names that are no log links have no container ID', () => {
  for (const name of ['', 'x.log', 'web_default_main-abc.log', 'web_default_main-abcdef012345.txt']) {
    assert.equal(containerIdOfLogLink(name), undefined, name);
  }
});
