import { ask, chapter, create, patch, type Step } from '../step.ts';
import { boundPod, configMap, core } from './objects.ts';

const maps = `${core}/configmaps`;

function creations(): readonly Step[] {
  const metas: readonly object[] = [
    { name: 'Upper' },
    { name: 'a_b' },
    { name: '' },
    {},
    { name: 'x'.repeat(254) },
    { name: 'a..b' },
    { name: 'a', namespace: 'other' },
    { name: 'with-version', resourceVersion: '1' },
    { name: 'with-uid', uid: 'mine', creationTimestamp: '2020-01-01T00:00:00Z', generation: 7 },
    { name: 'with-deletion', deletionTimestamp: '2020-01-01T00:00:00Z', deletionGracePeriodSeconds: 5 },
    { name: 'with-link', selfLink: '/x' },
    { name: 'labels', labels: { 'a b': 'c' } },
    { name: 'labels', labels: { ok: 'd e' } },
    { name: 'labels', labels: { '': 'x' } },
    { name: 'notes', annotations: { 'a b': 'c' } },
    { name: 'large-notes', annotations: { big: 'x'.repeat(262_145) } },
    { name: 'finalizers', finalizers: ['plain'] },
    { name: 'finalizers', finalizers: ['example.org/ok', 'a b'] },
    { name: 'owners', ownerReferences: [{}] },
    {
      name: 'owners',
      ownerReferences: ['a', 'b'].map((name) => ({
        apiVersion: 'v1',
        kind: 'Pod',
        name,
        uid: name,
        controller: true,
      })),
    },
    { name: 'owners', ownerReferences: [{ apiVersion: 'v1', kind: 'Event', name: 'e', uid: 'e' }] },
    { generateName: 'made-' },
    { generateName: 'Made-' },
    { generateName: 'x'.repeat(60) },
  ];
  return [
    ...metas.map((metadata) =>
      create(maps, { metadata }, { what: `create with ${JSON.stringify(metadata).slice(0, 90)}` }),
    ),
    create(maps, configMap('twice')),
    create(maps, configMap('twice')),
    create(`${core}/nothings`, configMap('x')),
    create('/api/v1/namespaces/not-there/configmaps', configMap('x')),
    create('/api/v1/configmaps', configMap('x')),
    create(`${maps}/named`, configMap('x')),
    create(`${maps}?dryRun=All`, configMap('dry')),
    create(
      `${maps}?dryRun=All`,
      { metadata: { generateName: 'dry-' } },
      { what: 'a dry run with a generated name' },
    ),
    ask(`GET ${maps}/dry`),
    create(`${maps}?dryRun=Some`, configMap('dry')),
    create(`${maps}?dryRun=All&dryRun=All`, configMap('dry')),
    create(`${maps}?dryRun=`, configMap('not-dry')),
    create(`${maps}?fieldManager=${'x'.repeat(129)}`, configMap('long'), { what: 'a long field manager' }),
    create(maps, configMap('key', { 'a/b': 'x', ok: 'z' })),
    create(maps, { ...configMap('both', { a: '1' }), binaryData: { a: 'AAAA' } }),
    create(maps, { ...configMap('binary'), binaryData: { a: 'not base64!' } }),
    create(maps, { ...configMap('large'), data: { a: 'x'.repeat(1_048_577) } }, { what: 'too many bytes' }),
    create(maps, { ...configMap('frozen', { a: '1' }), immutable: true }),
    patch('merge', `${maps}/frozen`, { data: { a: '2' } }),
    patch('merge', `${maps}/frozen`, { immutable: false }),
    patch('merge', `${maps}/frozen`, { metadata: { labels: { may: 'change' } } }),
  ];
}

function validation(): readonly Step[] {
  const unknown = { ...configMap('v', { a: '1' }), extra: 1, metadata: { name: 'v', labls: { a: 'b' } } };
  const twice = {
    text: '{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"t"},"data":{"a":"1","a":"2"}}',
  };
  return [
    ...['Strict', 'Warn', 'Ignore', 'Other', ''].flatMap((how) => [
      create(`${maps}?dryRun=All&fieldValidation=${how}`, unknown),
      ask(`POST ${maps}?dryRun=All&fieldValidation=${how}`, { raw: twice, what: `a key twice, ${how}` }),
    ]),
    create(`${maps}?dryRun=All`, unknown, { what: 'unknown fields with default validation' }),
    create(
      `${core}/pods?dryRun=All&fieldValidation=Strict`,
      boundPod('p', { containers: [{ name: 'c', image: 'a', imag: 'b' }], x: {} }),
    ),
  ];
}

function updates(): readonly Step[] {
  const at = `${maps}/u`;
  return [
    create(maps, configMap('u', { n: '1' }), { keep: 'u' }),
    ask(`PUT ${at}`, { body: configMap('u', { n: '2' }), what: 'without a version' }),
    ask(`PUT ${at}`, {
      body: configMap('u', { n: '3' }, { resourceVersion: '<u.metadata.resourceVersion>' }),
      what: 'with an old version',
    }),
    ask(`PUT ${at}`, {
      body: configMap('u', { n: '3' }, { resourceVersion: 'x' }),
      what: 'with an invalid version',
    }),
    ask(`PUT ${at}`, { body: configMap('u', { n: '3' }, { resourceVersion: '0' }), what: 'with version 0' }),
    ask(`PUT ${at}`, { body: configMap('u', { n: '4' }, { uid: 'other' }), what: 'with another uid' }),
    ask(`PUT ${at}`, { body: configMap('u', { n: '4' }, { uid: '<u.metadata.uid>' }), what: 'with its uid' }),
    ask(`PUT ${at}`, { body: configMap('other', {}), what: 'with another name' }),
    ask(`PUT ${at}`, { body: configMap('', {}), what: 'with no name' }),
    ask(`PUT ${at}`, { body: configMap('u', {}, { namespace: 'other' }), what: 'with another namespace' }),
    ask(`PUT ${at}`, { body: { ...configMap('u'), kind: 'Secret' }, what: 'of another kind' }),
    ask(`PUT ${at}`, { body: { ...configMap('u'), apiVersion: 'v2' }, what: 'of another version' }),
    ask(`PUT ${at}`, { body: { metadata: { name: 'u' } }, what: 'without kind and version' }),
    ask(`PUT ${at}`, {
      body: configMap('u', {}, { creationTimestamp: '2020-01-01T00:00:00Z', generation: 5 }),
      what: 'with fields owned by the server',
    }),
    ask(`PUT ${at}?dryRun=All`, { body: configMap('u', { dry: 'run' }) }),
    ask(`PUT ${maps}/not-there`, { body: configMap('not-there') }),
    ask(`PUT ${maps}`, { body: configMap('u') }),
    ask(`GET ${at}`),
    ask(`PUT ${core}/services/new`, {
      body: { metadata: { name: 'new' }, spec: { ports: [{ port: 1 }] } },
      what: 'a service created by an update',
    }),
    ask(`PUT ${core}/endpoints/new`, {
      body: { metadata: { name: 'new' } },
      what: 'endpoints created by an update',
    }),
    ask(`PUT ${core}/secrets/new`, {
      body: { metadata: { name: 'new' } },
      what: 'a secret is not created by an update',
    }),
    ask(`PUT ${core}/events/new`, {
      body: { metadata: { name: 'new' }, involvedObject: { namespace: '<ns>' } },
      what: 'an event created by an update',
    }),
  ];
}

function deletions(): readonly Step[] {
  const named = (name: string) => `${maps}/${name}`;
  const options = (body: object) => ({ kind: 'DeleteOptions', apiVersion: 'v1', ...body });
  return [
    create(maps, configMap('d', {}), { keep: 'd' }),
    ask(`DELETE ${named('not-there')}`),
    ask(`DELETE ${named('d')}`, {
      body: options({ preconditions: { uid: 'other' } }),
      what: 'with another uid',
    }),
    ask(`DELETE ${named('d')}`, {
      body: options({ preconditions: { resourceVersion: '1' } }),
      what: 'with another version',
    }),
    ask(`DELETE ${named('d')}`, { body: options({ propagationPolicy: 'Sideways' }) }),
    ask(`DELETE ${named('d')}`, { body: options({ propagationPolicy: 'Orphan', orphanDependents: true }) }),
    ask(`DELETE ${named('d')}?propagationPolicy=Sideways`),
    ask(`DELETE ${named('d')}?gracePeriodSeconds=x`),
    ask(`DELETE ${named('d')}`, { body: options({ gracePeriodSeconds: 'x' }) }),
    ask(`DELETE ${named('d')}`, { body: options({ dryRun: ['Some'] }) }),
    ask(`DELETE ${named('d')}`, { body: options({ dryRun: ['All'] }) }),
    ask(`DELETE ${named('d')}`, {
      body: { kind: 'Pod', apiVersion: 'v1' },
      what: 'with a body that is not DeleteOptions',
    }),
    ask(`DELETE ${named('d')}`, { raw: { text: '{' }, what: 'with a truncated body' }),
    ask(`DELETE ${named('d')}`, {
      body: options({ propagationPolicy: 'Background', preconditions: { uid: '<d.metadata.uid>' } }),
    }),
    create(maps, configMap('e')),
    ask(`DELETE ${named('e')}?propagationPolicy=Background`),
    create(maps, configMap('foreground')),
    ask(`DELETE ${named('foreground')}?propagationPolicy=Foreground`),
    ask(`GET ${named('foreground')}`),
    create(maps, configMap('orphan')),
    ask(`DELETE ${named('orphan')}?propagationPolicy=Orphan`),
    ask(`DELETE ${core}/serviceaccounts/not-there`),
    create(`${core}/serviceaccounts`, { metadata: { name: 'gone' } }),
    ask(`DELETE ${core}/serviceaccounts/gone`),
    create(`${core}/secrets`, { metadata: { name: 'gone' }, stringData: { a: 'b' } }),
    ask(`DELETE ${core}/secrets/gone`),
  ];
}

function collections(): readonly Step[] {
  const many = ['a', 'b', 'c', 'd'].map((name, at) =>
    create(maps, configMap(`many-${name}`, {}, { labels: { many: at < 3 ? 'yes' : 'no' } })),
  );
  return [
    ...many,
    ask(`DELETE ${maps}?labelSelector=many=yes&dryRun=All`),
    ask(`DELETE ${maps}?labelSelector=many=yes&limit=2`),
    ask(`DELETE ${maps}?fieldSelector=metadata.name=many-d`),
    ask(`DELETE ${maps}?labelSelector=a%20b`),
    ask(`DELETE ${maps}?fieldSelector=data=x`),
    ask(`GET ${maps}?labelSelector=many`),
    ask('DELETE /api/v1/configmaps'),
    ask('DELETE /api/v1/namespaces'),
    create(`${core}/pods`, boundPod('one', {}, { labels: { all: 'go' } })),
    create(`${core}/pods`, boundPod('two', {}, { labels: { all: 'go' } })),
    ask(`DELETE ${core}/pods?labelSelector=all=go`, { what: 'pods of a collection get their grace period' }),
    ask(`GET ${core}/pods?labelSelector=all=go`),
    ask(`DELETE ${core}/pods?labelSelector=all=go`, {
      body: { kind: 'DeleteOptions', apiVersion: 'v1', gracePeriodSeconds: 0 },
    }),
    ask(`GET ${core}/pods?labelSelector=all=go`),
  ];
}

export const writes = chapter('writes', [
  ...creations(),
  ...validation(),
  ...updates(),
  ...deletions(),
  ...collections(),
]);
