import type { JsonObject } from '../../api/index.ts';
import type { Instant } from '../../lib/index.ts';
import type { ApiUser } from './api-types.ts';

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

/** Who a token stands for, as `status` of a TokenReview. */
export interface TokenVerdict extends JsonObject {
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

/** As `status` of a SubjectAccessReview. */
export interface AccessVerdict extends JsonObject {
  readonly allowed: boolean;
  readonly denied?: boolean;
  readonly reason?: string;
  readonly evaluationError?: string;
}

/** What a certificate signing request (PKCS #10) asks for. */
export interface SigningFacts {
  readonly commonName: string;
  readonly organizations: readonly string[];
  readonly dnsNames: readonly string[];
  readonly ipAddresses: readonly string[];
  readonly emailAddresses: readonly string[];
  readonly uris: readonly string[];
}

export interface SigningOrder {
  /** The request as it was sent: PEM. */
  readonly request: string;
  /** Such as `digital signature`, `key encipherment`, `client auth`. */
  readonly usages: readonly string[];
  readonly notBefore: Instant;
  readonly notAfter: Instant;
}

/** Where certificates are made out. */
export interface SigningDesk {
  /** What a request asks for; undefined when it is none, or not signed by the key it names. */
  read(request: string): SigningFacts | undefined;
  /** The certificate as PEM; never valid for longer than the authority itself. Throws when it cannot. */
  sign(order: SigningOrder): string | Promise<string>;
}

/** What stands in a token of a service account. Times are seconds since 1970. */
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
    readonly serviceaccount: Bearer;
    readonly pod?: Bearer;
    readonly node?: Bearer;
    readonly secret?: Bearer;
  };
}

export interface Bearer {
  readonly name: string;
  readonly uid: string;
}

/** Where tokens of service accounts are made out and recognised. */
export interface TokenDesk {
  /** The audience a token is for when none is asked for, too. */
  readonly issuer: string;
  /** The token, signed. */
  issue(claims: TokenClaims): string;
  /**
   * Whom a token stands for, if its time is not over, it is for one of these audiences (the issuer if none is given)
   * and whatever it is bound to still exists. The verdict's audiences are those both know.
   */
  verify(token: string, audiences: readonly string[]): TokenVerdict;
}

/** Rules as `status` of a SelfSubjectRulesReview lists them. */
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

/** Who may do what. */
export interface AccessJudge {
  judge(user: ApiUser, attributes: AccessAttributes): AccessVerdict;
  rulesOf(user: ApiUser, namespace: string): AccessRules;
}
