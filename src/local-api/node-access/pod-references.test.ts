import assert from 'node:assert/strict';
import { test } from 'node:test';
import { apiResources } from '../../api/index.ts';
import type { StoredObject } from '../api/stored-object.ts';
import { judgeNode } from './node-authorizer.ts';
import { isFromManifest, manifestAnnotation, usesManifestsOnly } from './pod-references.ts';

const objects = {
  get: ({ plural }: { readonly plural: string }, _namespace: string | undefined, name: string) =>
    plural === 'configmaps' && ['beside', 'other'].includes(name)
      ? ({
          metadata: { name, annotations: name === 'beside' ? { [manifestAnnotation]: 'a.yaml' } : {} },
        } as unknown as StoredObject)
      : undefined,
  all: () => [],
};

function podUsing(spec: object): StoredObject {
  return { metadata: { name: 'p', namespace: 'default' }, spec } as unknown as StoredObject;
}

function volume(name: string) {
  return { volumes: [{ name: 'v', configMap: { name } }] };
}

test('what was written in a file on the node is known by it', () => {
  assert.equal(isFromManifest(apiResources.configMaps, 'default', 'beside', objects), true);
  assert.equal(isFromManifest(apiResources.configMaps, 'default', 'other', objects), false);
  assert.equal(isFromManifest(apiResources.secrets, 'default', 'beside', objects), false);
});

test('a mirror pod may refer to that, and to nothing else', () => {
  assert.equal(usesManifestsOnly(podUsing(volume('beside')), objects), true);
  assert.equal(usesManifestsOnly(podUsing(volume('other')), objects), false);
  assert.equal(usesManifestsOnly(podUsing({ ...volume('beside'), serviceAccountName: 'a' }), objects), false);
});

test('the node may read it although no pod of the API uses it', () => {
  const wish = (name: string) => ({
    verb: 'get',
    resource: apiResources.configMaps,
    namespace: 'default',
    name,
  });
  assert.deepEqual(judgeNode('n', wish('beside'), objects), { may: 'yes' });
  assert.equal(judgeNode('n', wish('other'), objects).may, 'no');
});
