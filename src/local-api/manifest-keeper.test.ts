import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LocalApiRig } from '../../test/fakes/local-api-rig.ts';
import { manifestKeeper } from './manifest-keeper.ts';

test('an object is known by what it is and where it lies', () => {
  using rig = new LocalApiRig();
  const { nameOf } = manifestKeeper(rig.api.world, rig.catalogue);
  assert.equal(nameOf({ kind: 'ConfigMap', metadata: { name: 'a' } }), 'configmaps/default/a');
  assert.equal(nameOf({ kind: 'PersistentVolume', metadata: { name: 'v' } }), 'persistentvolumes//v');
});

test('an object without a name is refused, and the field is told', () => {
  using rig = new LocalApiRig();
  const { nameOf, apply } = manifestKeeper(rig.api.world, rig.catalogue);
  const refused = (current: string) => ({
    code: 'API_INVALID',
    message: `Cannot use a Secret as metadata.name must be a name: current value is ${current}`,
  });
  assert.throws(() => nameOf({ kind: 'Secret' }), refused('none'));
  assert.throws(() => nameOf({ kind: 'Secret', metadata: { name: 7 } }), refused('7'));
  assert.throws(() => apply({ kind: 'Secret', metadata: { name: '' } }, 'a.yaml'), refused('""'));
});
