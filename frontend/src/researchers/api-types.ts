/** What goes between the server and the researcher's pages, by the names of `finecomb.server.researchers.schema`. */
import type {
  Overview,
  Recruitment as SendableRecruitment,
  ResearcherMe,
  Running as Described,
  Settings as Sendable,
} from "../lib/schema";

export type {
  Added,
  Address,
  AttemptResult,
  CalibrationPage,
  CellPayRow,
  DesignCellRow,
  DesignPage,
  Did,
  DocumentList,
  DocumentPage,
  DocumentRow,
  Exclusion,
  Export,
  Figure,
  Links,
  Overview,
  Person,
  PersonalLinkResponse,
  PersonPage,
  StudyProgress,
  ProtocolRow,
  AnnotationBars,
  ReaderMark,
  Recruit,
  Recruiting,
  ResearcherRow,
  FailedText,
  ModelChoice,
  PlacedQuote,
  RunList,
  RunPage,
  RunPreview,
  RunRow,
  QualificationScores,
  Suggested,
  WatchedFigure,
} from "../lib/schema";

export type Me = ResearcherMe;
export type Role = Me["role"];
export type State = Overview["state"];
export type DocumentFilter = "all" | "unfinished" | "disputed";
/** Settings as they come from the server, where every one of them is there. */
export type Settings = Required<Sendable> & { recruitment: Recruitment };
export type Recruitment = Required<SendableRecruitment>;
export type Running = Described & { settings: Settings };
