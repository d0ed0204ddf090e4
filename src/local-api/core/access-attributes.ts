/** What somebody would like to do: to objects, or to a path that is no object's. */
export type AccessAttributes = ResourceAccess | PathAccess;

export interface ResourceAccess {
  readonly to: 'resource';
  readonly verb: string;
  readonly group: string;
  readonly version: string;
  readonly resource: string;
  /** Empty for an object itself. */
  readonly subresource: string;
  /** Empty for all namespaces, and for objects of the cluster. */
  readonly namespace: string;
  /** Empty for all names. */
  readonly name: string;
  readonly fieldSelector?: string;
  readonly labelSelector?: string;
}

export interface PathAccess {
  readonly to: 'path';
  readonly verb: string;
  readonly path: string;
}

type Given = { readonly [Name in keyof Omit<ResourceAccess, 'to'>]?: string | undefined };

/** Whoever asks, by a request, a review or in somebody's name: what is not said is empty. */
export function resourceAccess(given: Given): ResourceAccess {
  const { verb = '', group = '', version = '', resource = '', fieldSelector, labelSelector } = given;
  const { subresource = '', namespace = '', name = '' } = given;
  return {
    to: 'resource',
    verb,
    group,
    version,
    resource,
    subresource,
    namespace,
    name,
    ...(fieldSelector === undefined ? {} : { fieldSelector }),
    ...(labelSelector === undefined ? {} : { labelSelector }),
  };
}
