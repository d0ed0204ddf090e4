import { ask, chapter, create, patch, patchTypes } from '../step.ts';
import { configMap, core } from './objects.ts';

const maps = `${core}/configmaps`;

export const apply = chapter('apply', [
  create(maps, configMap('a', { n: '1' })),
  patch('apply', `${maps}/a?fieldManager=m`, configMap('a', { m: '1' })),
  patch('apply', `${maps}/a?fieldManager=other`, configMap('a', { m: '2' })),
  patch('apply', `${maps}/a?fieldManager=other&force=true`, configMap('a', { m: '2' })),
  patch('apply', `${maps}/b?fieldManager=m`, configMap('b', { m: '1' })),
  patch('apply', `${maps}/a`, configMap('a', { m: '1' })),
  ask(`PATCH ${maps}/a?fieldManager=m`, {
    raw: { text: 'a: [' },
    type: patchTypes.apply,
    what: 'invalid YAML',
  }),
]);
