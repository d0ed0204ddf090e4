import assert from 'node:assert/strict';
import { test } from 'node:test';
import { memoryRuntimeFiles } from '../../../test/fakes/memory-runtime-files.ts';
import { memoryFiles } from '../../../test/simulator/index.ts';
import { ContainerRemover } from './container-deletor.ts';

test('concurrent removals of one container share a single RemoveContainer call', async () => {
  const { promise: gone, resolve: goes } = Promise.withResolvers<void>();
  const requests: string[] = [];
  const removed: string[] = [];
  const remover = new ContainerRemover({
    cri: {
      containerStatus: async () => ({ status: undefined, info: {} }),
      removeContainer: async ({ containerId }) => {
        requests.push(containerId ?? '');
        await gone;
        return {};
      },
    },
    files: memoryRuntimeFiles(memoryFiles()),
    logLinksDir: '/links',
    removed: (id) => removed.push(id),
  });
  const { signal } = new AbortController();
  const both = Promise.all([
    remover.remove('a', 'with-logs', signal),
    remover.remove('a', 'keep-logs', signal),
  ]);
  const other = remover.remove('b', 'keep-logs', signal);
  goes();
  await Promise.all([both, other]);
  assert.deepEqual(requests.sort(), ['a', 'b']);
  assert.deepEqual(removed.sort(), ['a', 'a', 'b']);
  await remover.remove('a', 'keep-logs', signal);
  assert.equal(requests.length, 3, 'a removal that has finished is not reused');
});
