import type { JsonObject } from '../../api/index.ts';
import type { Instant } from '../../lib/index.ts';
import type { ApiUser } from './api-types.ts';

/** The attributes of an authorization request: for a resource or a non-resource path. */
export type AccessAttributes = ResourceAccess | PathAccess;

export interface ResourceAccess {
  readonly to: 'resource';
  readonly verb: string;
  readonly group: string;
  readonly version: string;
  readonly resource: string;
  /** The subresource; empty for the main resource. */
  readonly subresource: string;
  /** The namespace; empty for all namespaces and for cluster-scoped resources. */
  readonly namespace: string;
  /** The object name; empty for all names. */
  readonly name: string;
  readonly fieldSelector?: string;
  readonly labelSelector?: string;
}

export interface PathAccess {
  readonly to: 'path';
  readonly verb: string;
  readonly path: string;
}

type PartialAttributes = { readonly [Name in keyof Omit<ResourceAccess, 'to'>]?: string | undefined };

/**
 * Builds authorization attributes from an API request, a review or an impersonation; absent fields
 * become empty.
 */
export function resourceAccess(given: PartialAttributes): ResourceAccess {
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

/** The `status` of a TokenReview. */
export interface TokenCheckResult extends JsonObject {
  readonly authenticated: boolean;
  readonly user?: {
    readonly username: string;
    readonly uid?: string;
    readonly groups?: readonly string[];
    readonly extra?: Readonly<Record<string, readonly string[]>>;
  };
  readonly audiences?: readonly string[];
  readonly error?: string;
}

/** The `status` of a SubjectAccessReview. */
export interface AccessDecision extends JsonObject {
  readonly allowed: boolean;
  readonly denied?: boolean;
  readonly reason?: string;
  readonly evaluationError?: string;
}

/** The subject and the alternative names of a certificate signing request (PKCS #10). */
export interface CertificateRequestInfo {
  readonly commonName: string;
  readonly organizations: readonly string[];
  readonly dnsNames: readonly string[];
  readonly ipAddresses: readonly string[];
  readonly emailAddresses: readonly string[];
  readonly uris: readonly string[];
}

export interface SigningParameters {
  /** The certificate signing request as PEM. */
  readonly request: string;
  /** Key usages such as `digital signature`, `key encipherment`, `client auth`. */
  readonly usages: readonly string[];
  readonly notBefore: Instant;
  readonly notAfter: Instant;
}

/** Reads certificate signing requests and signs certificates. */
export interface CertificateSigner {
  /**
   * Parses a certificate signing request; undefined if it is malformed or not signed by its own
   * key.
   */
  read(request: string): CertificateRequestInfo | undefined;
  /**
   * Returns the signed certificate as PEM; it expires no later than the CA. Throws if the request
   * cannot be signed.
   */
  sign(order: SigningParameters): string | Promise<string>;
}

/** The claims of a service account token. Times are seconds since 1970. */
export interface TokenClaims {
  readonly iss: string;
  readonly sub: string;
  readonly aud: readonly string[];
  readonly exp: number;
  readonly iat: number;
  readonly nbf: number;
  readonly jti: string;
  readonly 'kubernetes.io': {
    readonly namespace: string;
    readonly serviceaccount: BoundObject;
    readonly pod?: BoundObject;
    readonly node?: BoundObject;
    readonly secret?: BoundObject;
  };
}

export interface BoundObject {
  readonly name: string;
  readonly uid: string;
}

/** Issues and verifies service account tokens. */
export interface TokenIssuer {
  /** The issuer of the tokens; also the audience of tokens that request none. */
  readonly issuer: string;
  /** Returns the signed token. */
  issue(claims: TokenClaims): string;
  /**
   * Verifies signature, validity, audience (the issuer if none is given) and that the bound objects
   * still exist. The audiences of the result are the requested audiences that the token has.
   */
  verify(token: string, audiences: readonly string[]): TokenCheckResult;
}

/** The `status` of a SelfSubjectRulesReview. */
export interface AccessRules extends JsonObject {
  readonly resourceRules: readonly {
    readonly verbs: readonly string[];
    readonly apiGroups: readonly string[];
    readonly resources: readonly string[];
    readonly resourceNames?: readonly string[];
  }[];
  readonly nonResourceRules: readonly {
    readonly verbs: readonly string[];
    readonly nonResourceURLs: readonly string[];
  }[];
  readonly incomplete: boolean;
}

/** Decides whether a user may make a request. */
export interface AccessAuthorizer {
  authorize(user: ApiUser, attributes: AccessAttributes): AccessDecision;
  rulesFor(user: ApiUser, namespace: string): AccessRules;
}
