import type { JsonObject } from '../../api/index.ts';
import type { Instant } from '../../lib/index.ts';
import type { AccessAttributes, AccessVerdict, ApiUser, TokenVerdict } from '../core/index.ts';

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
