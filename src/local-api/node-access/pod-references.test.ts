import assert from 'node:assert/strict';
import { test } from 'node:test';
import { apiResources } from '../../api/index.ts';
import type { StoredObject } from '../api/stored-object.ts';
import { authorizeNodeRequest } from './node-authorizer.ts';
import { isFromManifest, manifestAnnotation, referencesOnlyManifestObjects } from './pod-references.ts';

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

test('recognizes an object from a manifest by its annotation', () => {
  assert.equal(isFromManifest(apiResources.configMaps, 'default', 'beside', objects), true);
  assert.equal(isFromManifest(apiResources.configMaps, 'default', 'other', objects), false);
  assert.equal(isFromManifest(apiResources.secrets, 'default', 'beside', objects), false);
});

test('lets a mirror pod reference only objects from manifests', () => {
  assert.equal(referencesOnlyManifestObjects(podUsing(volume('beside')), objects), true);
  assert.equal(referencesOnlyManifestObjects(podUsing(volume('other')), objects), false);
  assert.equal(
    referencesOnlyManifestObjects(podUsing({ ...volume('beside'), serviceAccountName: 'a' }), objects),
    false,
  );
});

test('lets the node read a manifest object although no API pod references it', () => {
  const wish = (name: string) => ({
    verb: 'get',
    resource: apiResources.configMaps,
    namespace: 'default',
    name,
  });
  assert.deepEqual(authorizeNodeRequest('n', wish('beside'), objects), { may: 'yes' });
  assert.equal(authorizeNodeRequest('n', wish('other'), objects).may, 'no');
});
