import type { DeleteOptions, JsonObject } from '../../api/index.ts';
import type { ApiRequest, ObjectReader } from '../api/api-types.ts';
import { StatusError } from '../api/api-types.ts';
import {
  badRequest,
  conflict,
  forbidden,
  invalid,
  modifiedMessage,
  notFound,
  preconditionFailed,
} from '../api/status-errors.ts';
import type { StoredObject } from '../api/stored-object.ts';
import { namespaceMismatch } from './object-meta.ts';
import { serverResources } from './resource-table.ts';

/** Name and namespace of an object must match the request path. */
export function checkMatchesPath({ resource, namespace, name = '' }: ApiRequest, desired: JsonObject): void {
  const { name: own, namespace: home } = desired;
  if ((home ?? '') !== '' && resource.scope === 'namespace' && home !== namespace) throw namespaceMismatch();
  if ((own ?? '') === '')
    throw badRequest(
      `the name of the object (${name} based on URL) was undeterminable: name must be provided`,
    );
  if (own !== name)
    throw badRequest(`the name of the object (${own}) does not match the name on the URL (${name})`);
}

/** A uid or resourceVersion in the object of a request is a precondition. */
export function checkUpdatePreconditions(
  request: ApiRequest,
  { metadata }: StoredObject,
  desired: JsonObject,
  verb: 'update' | 'patch',
): void {
  const { uid = '', resourceVersion = '' } = desired;
  const isOther = uid !== '' && uid !== metadata.uid;
  if (isOther && verb === 'update') throw uidMismatch(request, String(uid), metadata.uid);
  const isAnyVersion = resourceVersion === '' || resourceVersion === '0';
  if (!isAnyVersion && resourceVersion !== metadata.resourceVersion) throw conflict(request, modifiedMessage);
  if (isOther)
    throw invalid(request, [
      {
        reason: 'FieldValueInvalid',
        field: 'metadata.uid',
        message: `Invalid value: ${JSON.stringify(uid)}: field is immutable`,
      },
    ]);
}

export function uidMismatch(request: ApiRequest, expected: string, actual: string): StatusError {
  const { resource, namespace, name = '' } = request;
  const key = ['/registry', resource.plural, namespace, name].filter((part) => part !== undefined).join('/');
  return conflict(
    request,
    `StorageError: invalid object, Code: 4, Key: ${key}, ResourceVersion: 0, AdditionalErrorMsg: ` +
      `Precondition failed: UID in precondition: ${expected}, UID in object meta: ${actual}`,
  );
}

export function checkDeletePreconditions(
  request: ApiRequest,
  { metadata }: StoredObject,
  { uid, resourceVersion }: DeleteOptions,
): void {
  // For namespaces, kube-apiserver checks the UID precondition earlier and returns a different
  // error message.
  if (uid !== undefined && uid !== metadata.uid && request.resource.plural === 'namespaces')
    throw conflict(
      request,
      `Precondition failed: UID in precondition: ${uid}, UID in object meta: ${metadata.uid}`,
    );
  if (uid !== undefined && uid !== metadata.uid)
    throw preconditionFailed(
      request,
      `the UID in the precondition (${uid}) does not match the UID in record (${metadata.uid}). ` +
        'The object might have been deleted and then recreated',
    );
  if (resourceVersion !== undefined && resourceVersion !== metadata.resourceVersion)
    throw preconditionFailed(
      request,
      `the ResourceVersion in the precondition (${resourceVersion}) does not match the ResourceVersion in record ` +
        `(${metadata.resourceVersion}). The object might have been modified`,
    );
}

/** Some kinds reject updates without a resourceVersion. */
export function versionRequired({ resource: { plural, group }, name = '' }: ApiRequest): StatusError {
  // kube-apiserver names the plural in this error, not the kind.
  const what = group === '' ? plural : `${plural}.${group}`;
  const message = 'Invalid value: 0: must be specified for an update';
  const field = 'metadata.resourceVersion';
  return new StatusError({
    code: 422,
    reason: 'Invalid',
    message: `${what} "${name}" is invalid: ${field}: ${message}`,
    details: {
      name,
      ...(group === '' ? {} : { group }),
      kind: plural,
      causes: [{ reason: 'FieldValueInvalid', message, field }],
    },
  });
}

export function versionOnCreate(): StatusError {
  return new StatusError({
    code: 500,
    reason: '',
    message: 'resourceVersion should not be set on objects to be created',
  });
}

export interface NamespaceCheck {
  readonly store: ObjectReader;
  readonly namespaces: 'checked' | 'unchecked';
}

/** Objects can only be created in an existing namespace that is not terminating. */
export function checkNamespaceActive(
  { namespace, resource }: ApiRequest,
  name: string | undefined,
  { store, namespaces }: NamespaceCheck,
): void {
  if (namespaces === 'unchecked' || namespace === undefined || resource.scope === 'cluster') return;
  const namespaceObject = store.get(serverResources.namespaces, undefined, namespace);
  if (namespaceObject === undefined)
    throw notFound({ resource: serverResources.namespaces, name: namespace });
  const isTerminating =
    namespaceObject.metadata.deletionTimestamp !== undefined ||
    namespaceObject.status?.['phase'] === 'Terminating';
  if (isTerminating)
    throw forbidden(
      { resource, name },
      `unable to create new content in namespace ${namespace} because it is being terminated`,
      [
        {
          reason: 'NamespaceTerminating',
          message: `namespace ${namespace} is being terminated`,
          field: 'metadata.namespace',
        },
      ],
    );
}
