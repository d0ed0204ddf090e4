import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Container, ContainerStatusResponse, type CriClient } from '../../cri/index.ts';
import { KubelingError } from '../../lib/index.ts';
import { readContainerResources } from './container-resources.ts';
import { labels } from './labels.ts';

const { signal } = new AbortController();

/**
 * A fake runtime that lists containers with the given IDs; each value is the state that
 * ContainerStatus returns for the container, or the error that it throws.
 */
function aRuntime(responses: Readonly<Record<string, string | Error>>): CriClient {
  return {
    listContainers: async () => ({
      containers: Object.keys(responses).map((id) =>
        Container.create({
          id,
          state: 'CONTAINER_RUNNING',
          labels: { [labels.podUid]: `of-${id}`, [labels.containerName]: 'main' },
        }),
      ),
    }),
    containerStatus: async ({ containerId = '' }) => {
      const response = responses[containerId];
      if (response instanceof Error) throw response;
      const resources = { linux: { cpusetCpus: response ?? '' } };
      return ContainerStatusResponse.create({ status: { id: containerId, resources } });
    },
  } as Partial<CriClient> as CriClient;
}

describe('readContainerResources', () => {
  it('omits a container that is removed after it was listed', async () => {
    const gone = new KubelingError('CRI_NOT_FOUND', 'no such container');
    const found = await readContainerResources(aRuntime({ a: '1', b: gone, c: '2-3' }), signal);
    assert.deepEqual(
      found.map(({ id, linux }) => [id, linux?.cpusetCpus]),
      [
        ['a', '1'],
        ['c', '2-3'],
      ],
    );
  });

  it('fails when the runtime does not respond', async () => {
    const silent = new KubelingError('CRI_UNAVAILABLE', 'runtime unavailable');
    await assert.rejects(
      readContainerResources(aRuntime({ a: '1', b: silent }), signal),
      /runtime unavailable/,
    );
  });
});
