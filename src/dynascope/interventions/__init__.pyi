from .rank_svd import RankSVD as RankSVD
